"""Time limits as people write them (A17), and moments as the API writes them.

Plain module. `parse_timeout` reads what a caller or a form gave; `describe` says it back to people.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from runs.errors import ModelValidationError

_TEXT: Final = re.compile(
    r"(?:(?P<weeks>[0-9]+)w)?(?:(?P<days>[0-9]+)d)?(?:(?P<hours>[0-9]+)h)?"
    r"(?:(?P<minutes>[0-9]+)m)?(?:(?P<seconds>[0-9]+)s)?"
)
_MAX_TEXT: Final = 32
"""Characters of a time limit as text, which is stored as it was written."""

_UNITS: Final = (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))
_UNIT_SECONDS: Final = {f"{name}s": length for name, length in _UNITS} | {"seconds": 1}

MAX_TIMEOUT: Final = timedelta(days=36_500)
"""A hundred years: far enough for anybody, near enough that a deadline is still a date."""

_WRITE: Final = 'Write it like "90s", "5m", "1h30m", "2d" or "1w".'
_HELP: Final = f"{_WRITE} A number counts seconds; null waits for ever."
"""For values that are no text; a text box has neither numbers nor null to offer."""


def parse_timeout(value: object) -> timedelta | None:
    """Read a time limit: text with units from large to small, seconds as int or float, timedelta, or None.

    None means no limit. Raises ModelValidationError for everything else: a bare number as text, a sign,
    unknown or repeated units, booleans, NaN, and anything that is not above zero or is beyond MAX_TIMEOUT.
    """
    if value is None:
        return None
    if isinstance(value, timedelta):
        return _bounded(value, value)
    if isinstance(value, str):
        return _bounded(_seconds_of_text(value), value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded(value, value)
    raise ModelValidationError(f"A time limit cannot be of the type {type(value).__name__}. {_HELP}")


def _seconds_of_text(text: str) -> int:
    match = _TEXT.fullmatch(text) if 0 < len(text) <= _MAX_TEXT else None
    if match is None:
        raise ModelValidationError(f"{_quoted(text)} is not a time limit. {_WRITE}")
    return sum(int(number) * _UNIT_SECONDS[unit] for unit, number in match.groupdict().items() if number)


def _bounded(length: float | timedelta, given: object) -> timedelta:
    """The length (numbers are seconds) as a timedelta; `given` is what the caller wrote, for the error."""
    # Numbers are compared as they are: a huge one would overflow a timedelta.
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if isinstance(seconds, float) and math.isnan(seconds):
        raise ModelValidationError(f"NaN is not a time limit. {_HELP}")
    if seconds > MAX_TIMEOUT.total_seconds():
        raise ModelValidationError(f"{_quoted(given)} is longer than a hundred years. {_help(given)}")
    # Rounded to microseconds before the check, so that what is left of a tiny number is not zero.
    if seconds <= 0 or (limit := timedelta(seconds=seconds)) <= timedelta(0):
        raise ModelValidationError(
            f"A time limit must be above zero; {_quoted(given)} is not. {_help(given)}"
        )
    return limit


def _help(given: object) -> str:
    return _WRITE if isinstance(given, str) else _HELP


def _quoted(given: object) -> str:
    if isinstance(given, int) and given.bit_length() > 200:
        return "That number"  # Python refuses to print the longest ones
    shown = repr(given) if isinstance(given, str) else str(given)
    return shown if len(shown) <= _MAX_TEXT + 2 else shown[:_MAX_TEXT] + "…"


def describe(length: timedelta | None) -> str:
    """A length for people: "1 hour 30 minutes", "0.2 seconds", "no time limit"."""
    if length is None:
        return "no time limit"
    seconds = length.total_seconds()
    whole = int(seconds)
    parts = []
    for name, unit in _UNITS:
        count, whole = divmod(whole, unit)
        if count:
            parts.append(_counted(count, name))
    rest = round(whole + seconds - int(seconds), 3)
    if rest or not parts:
        parts.append(_counted(rest, "second"))
    return " ".join(parts)


def utc_text(moment: datetime) -> str:
    """A moment as every JSON of ours has it: ISO 8601 in UTC with a final Z, as the API's own fields do."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _counted(count: float, unit: str) -> str:
    return f"{count:g} {unit}" if count == 1 else f"{count:g} {unit}s"
