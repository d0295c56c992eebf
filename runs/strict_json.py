"""Reading JSON that a person or a program wrote, refusing what Python's reader lets through in silence.

Plain module. A repeated key would drop a value without a word, NaN and Infinity are no JSON, and endless nesting
would exhaust the stack.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

Number = Callable[[str], Any]


class StrictJsonError(ValueError):
    """`message` is a sentence without its place; `place` is "Line 2, column 7" for a slip in the grammar."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message, self.place = message, place


def loads(text: str, *, number: Number | None = None) -> Any:
    """The value that `text` spells; `number` reads every number from its spelling, if given.

    Raises StrictJsonError, and whatever `number` raises.
    """
    try:
        return json.loads(
            text,
            parse_float=number,
            parse_int=number,
            parse_constant=_no_constant,
            object_pairs_hook=_unique_keys,
        )
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"{error.msg}.", f"Line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise StrictJsonError("It is nested too deep.") from None
    except ValueError as error:
        if isinstance(error, StrictJsonError) or number is not None:
            raise
        raise StrictJsonError("A number has too many digits.") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise StrictJsonError(f'The name "{key[:80]}" stands twice in one object.')
        seen[key] = value
    return seen


def _no_constant(word: str) -> NoReturn:
    raise StrictJsonError(f"{word} is not a number in JSON.")
