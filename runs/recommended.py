"""Questions whose asker recommends an answer: which one, and what it means to take it (m8tes-http 4.5).

Plain module. An option is recommended by the end of its label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runs.steps import Json

MARK: Final = "(Recommended)"

VIA: Final = "recommended"
"""How history calls an answer that nobody gave: the recommended one was taken in time."""


def marked(question: Mapping[str, Json]) -> list[int]:
    """The indexes of the recommended options: the first one, or all where several may be chosen."""
    options = question.get("options") or []
    found = [index for index, option in enumerate(options) if option["label"].rstrip().endswith(MARK)]
    return found if question.get("multiSelect") else found[:1]


def responses(asked: Sequence[Mapping[str, Json]]) -> dict[str, dict[str, Any]] | None:
    """The answer that takes every recommendation; None if any question has none, so that people are needed."""
    chosen = [marked(question) for question in asked]
    if not asked or not all(chosen):
        return None
    return {
        f"q{number}": {"action": "accept", "content": {"selected": selected}}
        for number, selected in enumerate(chosen)
    }


def at_once(question: Mapping[str, Json]) -> Json:
    """The answer to a question that does not wait: what is recommended, else the first option, else nothing."""
    labels = [option["label"] for option in question.get("options") or []]
    taken = [labels[index] for index in marked(question)] or labels[:1]
    return taken if question.get("multiSelect") else (taken[0] if taken else None)
