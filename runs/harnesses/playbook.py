"""The playbook harness: a fixed list of steps with checkpoints for people, and no model (design section 3).

Plain module. Validation, expressions and the walk over the journal each have a module of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runs.harnesses.playbook_validation import literal_targets, mistakes_in
from runs.harnesses.playbook_walk import walk
from runs.steps import Journal, Json, Proposal


class PlaybookHarness:
    """Implements `runs.steps.Harness`; it keeps nothing between calls, so any worker can go on."""

    def validate(self, definition: Mapping[str, Json]) -> Sequence[str]:
        return mistakes_in(definition)

    def targets(self, definition: Mapping[str, Json]) -> frozenset[str]:
        return literal_targets(definition)

    def next_steps(self, journal: Journal) -> Sequence[Proposal]:
        return walk(journal)
