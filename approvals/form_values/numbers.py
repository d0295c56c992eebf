"""Typed numbers: JSON's grammar, exact or refused (R36)."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

from approvals.form_values.refusals import Refused

MAX_DIGITS = 1_000
"""Digits of a typed number, and of an integer that its exponent stands for."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def number_of(text: str) -> int | float:
    """The number that `text` spells, an int if it has neither point nor exponent.

    A float must be the very number that was typed: 1e999, and digits that a float cannot keep, are refused
    rather than changed. Raises Refused.
    """
    text = text.strip()
    found = _grammar(text, example="42 or 1.5")
    if not found.group(1) and not found.group(2):
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise Refused("This number is too large to be sent.")
    if _decimal(text) != Decimal(repr(value)):
        raise Refused(f"This number cannot be sent exactly; the nearest that can is {value!r}.")
    return value


def integer_of(text: str) -> int:
    """The whole number that `text` spells, exact at any size; 1.0 and 1e3 are whole too. Raises Refused."""
    text = text.strip()
    found = _grammar(text, example="42")
    if not found.group(1) and not found.group(2):
        return int(text)
    value = _decimal(text)
    if value.adjusted() > MAX_DIGITS:
        raise Refused("This number is too large to be sent.")
    if value.adjusted() < -MAX_DIGITS or value != value.to_integral_value():
        raise Refused("Enter a whole number, such as 42.")
    return int(value)


def _grammar(text: str, *, example: str) -> re.Match[str]:
    if len(text) > MAX_DIGITS:
        raise Refused(f"Enter a number of at most {MAX_DIGITS:,} digits.")
    found = _NUMBER.fullmatch(text)
    if found:
        return found
    if "," in text:
        raise Refused("Use a point for decimals, as in 1.5, and nothing between thousands.")
    raise Refused(f"Enter a number in digits, such as {example}.")


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Refused("This number's exponent is too large.") from None
