"""How mistakes in a playbook are worded.

Plain module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from runs.steps import Json


def unknown_keys(value: Mapping[str, Json], known: AbstractSet[str], where: str) -> Iterator[str]:
    """A mistake for every key of an object that it may not have."""
    for key in value:
        if key not in known:
            yield f"{where}: unknown key {quoted(key)}"


def quoted(text: str) -> str:
    """A text of the author in quotes, cut if long, with control characters escaped."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
