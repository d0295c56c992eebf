"""A local time and a zone as one RFC 3339 date-time with its offset, and back (R33)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from approvals.form_values.refusals import Refused

_LOCAL = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]+)?")
_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
_WHOLE = re.compile(r"(.{10})[Tt](.{8}(?:\.[0-9]+)?)([Zz]|[+-][0-9]{2}:[0-9]{2})")

UTC_NAMES = frozenset({"UTC", "Z"})


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """The zones that a person may name, UTC first."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name and "Etc/" not in name))


def joined(local: str, zone: str) -> str:
    """`2026-05-31T14:30` in `Europe/Berlin` as `2026-05-31T14:30:00+02:00`.

    `zone` is a name of the time zone database, UTC, or an offset such as +02:00. Raises Refused, also for a
    time that the zone skips or has twice when its clocks change.
    """
    found = _LOCAL.fullmatch(local.strip())
    if not found:
        raise Refused("Enter a date and a time, such as 2026-05-31 14:30.")
    day, minute, second, fraction = found.groups()
    clock = f"{minute}{second or ':00'}"
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}")
    except ValueError:
        raise Refused("Enter a date and a time that exist, such as 2026-05-31 14:30.") from None
    return f"{day}T{clock}{fraction or ''}{_offset(moment, zone.strip())}"


def parted(value: str) -> tuple[str, str]:
    """An RFC 3339 date-time as (local time, zone) for the two inputs; the inverse of `joined`."""
    found = _WHOLE.fullmatch(value)
    if not found:
        return value, ""
    day, clock, offset = found.groups()
    return f"{day}T{clock}", "UTC" if offset in "Zz" else offset


def _offset(moment: datetime, zone: str) -> str:
    if zone.upper() in UTC_NAMES:
        return "Z"
    if _OFFSET.fullmatch(zone):
        return zone
    if zone not in available_zones():
        raise Refused("Enter a time zone such as Europe/Berlin, UTC, or an offset such as +02:00.")
    info = ZoneInfo(zone)
    try:
        early, late = (moment.replace(tzinfo=info, fold=fold) for fold in (0, 1))
        exists = early.astimezone(UTC).astimezone(info).replace(tzinfo=None) == moment
    except OverflowError:
        raise Refused("Enter a date between the years 2 and 9998.") from None
    if not exists:
        raise Refused(f"This time does not exist in {zone}: its clocks skip it that day.")
    if early.utcoffset() != late.utcoffset():
        raise Refused(
            f"This time comes twice in {zone} that day. Enter the offset you mean as the zone: "
            f"{_written(early.utcoffset())} or {_written(late.utcoffset())}."
        )
    return _written(early.utcoffset())


@lru_cache(maxsize=1)
def available_zones() -> frozenset[str]:
    """Every name that the time zone database knows; looking it up reads many files, so it is kept."""
    return frozenset(available_timezones())


def _written(offset: timedelta | None) -> str:
    seconds = int((offset or timedelta()).total_seconds())
    if seconds % 60:
        raise Refused(
            "Enter the offset as the zone, such as +01:00: this zone had none in whole minutes then."
        )
    sign = "-" if seconds < 0 else "+"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{sign}{hours:02}:{minutes:02}"
