"""One call on both sides, and what counts as the same answer: everything, except the random lease tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.differential.sides import Side

START = datetime(2026, 1, 1, tzinfo=UTC)


class Both:
    """Two stores that are to behave alike, and one clock for both.

    A lease token that a store makes up is known to callers by a name ("token-1"); each side is told its own.
    """

    def __init__(self, reference: Side, ours: Side) -> None:
        self.reference = reference
        self.ours = ours

    def open(self) -> None:
        """Two new stores, at the same time."""
        self.now = START
        self.tokens: dict[str, tuple[str, str]] = {}
        self._each("open", {"now": self.now.isoformat()})

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self._each("set_clock", {"now": self.now.isoformat()})

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        """The answer on which both agree; an AssertionError tells of any difference."""
        theirs, ours = self.answers(name, **args)
        assert ours == theirs, f"{name}({args})\nreference: {theirs}\nours:      {ours}"
        return ours

    def answers(self, name: str, **args: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the reference answers and what we answer, comparable but not compared."""
        theirs, ours = self._each(name, args)
        self._name_tokens(theirs.get("ok"), ours.get("ok"))
        return theirs, ours

    def _each(self, name: str, args: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            side.answer(name, {key: self._token_of(at, value) for key, value in args.items()})
            for at, side in enumerate((self.reference, self.ours))
        ]

    def _token_of(self, at: int, value: Any) -> Any:
        return self.tokens[value][at] if isinstance(value, str) and value in self.tokens else value

    def _name_tokens(self, theirs: Any, ours: Any) -> None:
        """Put the names of tokens that both sides made up in the same place into both answers."""
        if isinstance(theirs, list) and isinstance(ours, list):
            for pair in zip(theirs, ours, strict=False):
                self._name_tokens(*pair)
        if not all(isinstance(record, dict) and "lease" in record for record in (theirs, ours)):
            return
        pair = (theirs["lease"]["lease_token"], ours["lease"]["lease_token"])
        if pair[0] != pair[1]:
            named = {tokens: name for name, tokens in self.tokens.items()}
            if not {token for tokens in named for token in tokens} & {*pair}:
                named[pair] = f"token-{len(named) + 1}"
                self.tokens[named[pair]] = pair
            if pair in named:
                theirs["lease"]["lease_token"] = ours["lease"]["lease_token"] = named[pair]
