"""A readable difference between two definitions of a tool, or two addresses of a server (R28).

Plain module: page, API and tests use the same values. What is risk-relevant comes first; every text has been through
`visible` (R13) and is bounded. Nothing here raises, whatever the definitions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from approvals.schema_diff import NEED, PRESENCE, ArgumentChange, argument_changes, value_text
from approvals.text_diff import Piece, text_pieces
from runs.described import DescribedEnum
from runs.visible import visible

MAX_DIFFERENCES: Final = 200
MAX_VALUE: Final = 4_000
"""Characters of one value; a longer one says how much of it is missing."""

_INLINE: Final = 80
"""Characters up to which a value stands in the sentence; a longer one gets a block under it."""


class Part(DescribedEnum):
    """What differs, in the order in which a person should read it."""

    SERVER = "server", "The server itself."
    TOOL = "tool", "Whether there is such a tool."
    HINT = "hint", "What the server says of the tool's effects."
    INPUT = "input", "What may or must be sent to it."
    DESCRIPTION = "description", "What the tool says of itself."
    WORDS = "words", "What is said about an argument."
    TITLE = "title", "What the tool is called on pages."
    OUTPUT = "output", "What it returns."


GRAVE: Final = frozenset({Part.SERVER, Part.TOOL, Part.HINT, Part.INPUT})
"""Differences that change what a call can do or carry."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A tool as its server described it at some moment."""

    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)


NOTHING: Final = Definition(input_schema={"type": "object"})
"""A tool that says nothing of itself: what everything is compared with where nothing else is known."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference as a sentence; `before` and `after` are values too long for it, None where there is none.

    `pieces` is the text of a description with what is gone and new in it.
    """

    part: Part
    sentence: str
    before: str | None = None
    after: str | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def grave(self) -> bool:
        return self.part in GRAVE

    def as_json(self) -> dict[str, Any]:
        """For the API."""
        return {
            "part": self.part.value,
            "risk_relevant": self.grave,
            "sentence": self.sentence,
            "before": self.before,
            "after": self.after,
            "text": [{"mark": piece.mark.value, "text": piece.text} for piece in self.pieces],
        }


def differences(before: Definition, after: Definition) -> tuple[Difference, ...]:
    """Everything that differs; equal definitions differ in nothing.

    Beyond MAX_DIFFERENCES the last one says how many more there are.
    """
    return _bounded(
        [
            *_hints(before.annotations, after.annotations),
            *_schema(before.input_schema, after.input_schema),
            *_description(before.description, after.description),
            *_one(Part.TITLE, "Title:", _quoted(before.title), _quoted(after.title)),
            *_output(before.output_schema, after.output_schema),
        ]
    )


def added_tool(name: str, definition: Definition) -> tuple[Difference, ...]:
    """A tool that was not there before, with all that it says of itself; `name` without its server."""
    head = Difference(part=Part.TOOL, sentence=f"The tool {visible(name)} is new.")
    return _bounded([head, *differences(NOTHING, definition)])


def moved_server(before: str, after: str) -> tuple[Difference, ...]:
    """Another server under the same name; the addresses have no secrets in them any more, "" for one not known."""
    old, new = _shown_address(before), _shown_address(after)
    sentence = "The server is another one."
    if before and before == after:
        sentence = "The server is another one. The addresses differ only in values that are not shown."
    return (Difference(part=Part.SERVER, sentence=sentence, before=old, after=new),)


def _shown_address(address: str) -> str:
    return _cut(visible(address)) if address else "The address is not known."


_HINTS: Final = {
    "readOnlyHint": "“only reads”",
    "destructiveHint": "“may destroy”",
    "idempotentHint": "“can be repeated”",
    "openWorldHint": "“reaches beyond itself”",
}


def _hints(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[Difference]:
    for name in dict.fromkeys([*_HINTS, *after, *before]):
        old = value_text(before[name]) if name in before else None
        new = value_text(after[name]) if name in after else None
        words = f"The server's own word {_HINTS[name]}:" if name in _HINTS else f"Annotation {visible(name)}:"
        yield from _one(Part.HINT, words, old, new)


def _schema(before: Any, after: Any) -> Iterable[Difference]:
    for change in argument_changes(before, after):
        yield from _argument(change)


def _argument(change: ArgumentChange) -> Iterable[Difference]:
    subject = f"Argument {change.argument}" if change.argument else "The arguments as a whole"
    if change.what == PRESENCE:
        yield _presence(subject, change.before, change.after)
    elif change.what == NEED:
        yield Difference(part=Part.INPUT, sentence=f"{subject}: {change.before} → {change.after}.")
    else:
        part = Part.INPUT if change.limits else Part.WORDS
        yield from _one(part, f"{subject}: {change.what}", change.before, change.after)


def _presence(subject: str, before: str | None, after: str | None) -> Difference:
    """An argument that was added or removed, with all that its schema says of it."""
    need, _, schema = (after or before or "").partition(" ")
    sentence = f"{subject}: {'added' if before is None else 'removed'}, {need}"
    if len(schema) <= _INLINE:
        return Difference(part=Part.INPUT, sentence=f"{sentence}, {schema}.")
    return Difference(
        part=Part.INPUT,
        sentence=f"{sentence}.",
        before=None if before is None else _cut(schema),
        after=None if after is None else _cut(schema),
    )


def _description(before: str, after: str) -> Iterable[Difference]:
    if before != after:
        yield Difference(
            part=Part.DESCRIPTION,
            sentence="What the tool says of itself.",
            pieces=text_pieces(before, after),
        )


def _output(before: Any, after: Any) -> Iterable[Difference]:
    old = None if before is None else value_text(before)
    new = None if after is None else value_text(after)
    yield from _one(Part.OUTPUT, "What it returns:", old, new)


def _quoted(title: str) -> str | None:
    return f"“{visible(title)}”" if title else None


def _one(part: Part, subject: str, before: str | None, after: str | None) -> Iterable[Difference]:
    """`subject` old → new, in the sentence if both are short."""
    if before == after:
        return
    if max(len(before or ""), len(after or "")) <= _INLINE:
        yield Difference(part=part, sentence=f"{subject} {before or 'not said'} → {after or 'not said'}.")
        return
    deed = "is new" if before is None else "is gone" if after is None else "has changed"
    yield Difference(
        part=part,
        sentence=f"{subject.rstrip(':')} {deed}.",
        before=None if before is None else _cut(before),
        after=None if after is None else _cut(after),
    )


def _cut(text: str) -> str:
    if len(text) <= MAX_VALUE:
        return text
    return f"{text[:MAX_VALUE]}… ({len(text) - MAX_VALUE:,} more characters)"


_RANK: Final = {part: rank for rank, part in enumerate(Part)}


def _bounded(found: list[Difference]) -> tuple[Difference, ...]:
    """Risk-relevant first, otherwise as they came."""
    found.sort(key=lambda one: _RANK[one.part])
    if len(found) <= MAX_DIFFERENCES:
        return tuple(found)
    more = len(found) - MAX_DIFFERENCES
    last = Difference(
        part=found[MAX_DIFFERENCES].part,
        sentence=f"{more} more differences are not listed. Look at the tool itself.",
    )
    return (*found[:MAX_DIFFERENCES], last)
