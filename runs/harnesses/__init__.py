"""Harnesses by name: who decides an agent's next step (design section 3). Plain package."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from runs.errors import ModelValidationError
from runs.harnesses.playbook import PlaybookHarness
from runs.steps import Harness

HARNESSES: Final[Mapping[str, Harness]] = MappingProxyType({"playbook": PlaybookHarness()})


def get_harness(name: str) -> Harness:
    """The harness of this name. Raises ModelValidationError, which lists the names that exist."""
    try:
        return HARNESSES[name]
    except KeyError:
        known = ", ".join(sorted(HARNESSES))
        raise ModelValidationError(f"There is no harness {name[:60]!r}. Known: {known}.") from None
