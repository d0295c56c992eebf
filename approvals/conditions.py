"""Argument conditions of a rule: which calls of a tool it is about (R26).

Plain module. A remembered value is a literal; only a pattern that an admin typed has wildcards, and the two
are different kinds of test, so that no literal is ever read as a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runs.canonical import NotJson, canonical_json
from runs.steps import Json


class TestKind(StrEnum):
    """How an argument is compared."""

    EQUALS = "equals"
    GLOB = "glob"

    __test__ = False  # the name is not meant for test collectors


MAX_GLOB: Final = 200
_MISSING: Final = object()


@dataclass(frozen=True, kw_only=True)
class ArgumentTest:
    """One argument must have this value, or match this pattern.

    `path` leads from the arguments object to the value, by keys and list positions; the empty path is all
    arguments. EQUALS compares JSON values exactly (1 and 1.0 differ). GLOB compares text, case and all: `*`
    is any run of characters, `?` is one; it never matches a value that is not text. Raises ValueError for a
    pattern that is not text or is longer than MAX_GLOB.
    """

    path: tuple[str | int, ...]
    kind: TestKind = TestKind.EQUALS
    value: Json = None

    def __post_init__(self) -> None:
        if self.kind is TestKind.GLOB and not (isinstance(self.value, str) and len(self.value) <= MAX_GLOB):
            raise ValueError(f"A pattern is text of at most {MAX_GLOB} characters.")

    def holds(self, arguments: Mapping[str, Json]) -> bool:
        found = _at(arguments, self.path)
        if found is _MISSING:
            return False
        if self.kind is TestKind.GLOB:
            return isinstance(found, str) and _glob(self.value, found)
        return _same(found, self.value)


Condition = tuple[ArgumentTest, ...]
"""All tests must hold."""


def condition_holds(condition: Condition, arguments: Mapping[str, Json]) -> bool:
    """Whether a rule with this condition is about a call with these arguments; no tests means yes."""
    return all(test.holds(arguments) for test in condition)


def exactly(arguments: Mapping[str, Json]) -> Condition:
    """The condition of "this tool with exactly these arguments"."""
    return (ArgumentTest(path=(), value=arguments),)


def _at(value: Json, path: Sequence[str | int]) -> Json:
    for step in path:
        in_object = isinstance(step, str) and isinstance(value, Mapping) and step in value
        in_array = isinstance(step, int) and isinstance(value, list | tuple) and 0 <= step < len(value)
        if not in_object and not in_array:
            return _MISSING
        value = value[step]
    return value


def _same(found: Json, wanted: Json) -> bool:
    try:
        return canonical_json(found) == canonical_json(wanted)
    except NotJson:
        return False


def _glob(pattern: str, text: str) -> bool:
    """Match in at most len(pattern) * len(text) steps; a regular expression could take far longer."""
    at, in_text = 0, 0
    star, resume = -1, 0
    while in_text < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, in_text
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[in_text]):
            at, in_text = at + 1, in_text + 1
        elif star >= 0:
            resume += 1
            at, in_text = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")
