"""The formats that are checked, each by the grammar of its RFC; all other formats are notes to the reader.

Only formats with a linear-time check are here, because the text comes from a form or an agent.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from urllib.parse import urlsplit

from jsonschema import FormatChecker

from runs.schema_check.patterns import PatternProblem, check_pattern

FORMATS = FormatChecker(formats=())
"""email, uri, date, date-time, time, ipv4, ipv6, hostname, uuid, regex."""

MAX_EMAIL_CHARS = 254
"""RFC 5321 section 4.5.3.1.3: a path of 256 octets less its two angle brackets."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LOCAL = re.compile(rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*")', re.ASCII)
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})*"
    r"(?:#(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?",
    re.ASCII,
)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@FORMATS.checks("email")
def is_email(value: object) -> bool:
    """An RFC 5321 mailbox: dot-string or quoted local part, then a host name or an address literal."""
    if not isinstance(value, str):
        return True
    local, at, domain = value.rpartition("@")
    if not at or len(value) > MAX_EMAIL_CHARS or len(local) > 64 or not _LOCAL.fullmatch(local):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        return _is_address(domain[1:-1].removeprefix("IPv6:"))
    return is_hostname(domain)


@FORMATS.checks("hostname")
def is_hostname(value: object) -> bool:
    """RFC 1123 labels, 253 characters in all."""
    return not isinstance(value, str) or (len(value) <= 253 and _HOSTNAME.fullmatch(value) is not None)


@FORMATS.checks("uri")
def is_uri(value: object) -> bool:
    """An RFC 3986 URI: a scheme, permitted characters, brackets only around an IPv6 host, a numeric port."""
    if not isinstance(value, str):
        return True
    if not _URI.fullmatch(value):
        return False
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    host_in_brackets = 1 if parts.netloc.rpartition("@")[2].startswith("[") else 0
    return value.count("[") == value.count("]") == host_in_brackets


@FORMATS.checks("date")
def is_date(value: object) -> bool:
    """RFC 3339 full-date, with a day that the month has."""
    if not isinstance(value, str):
        return True
    found = _DATE.fullmatch(value)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + leap


@FORMATS.checks("time")
def is_time(value: object) -> bool:
    """RFC 3339 full-time, offset included; second 60 only as the last of a UTC day."""
    if not isinstance(value, str):
        return True
    found = _TIME.fullmatch(value)
    if not found:
        return False
    hour, minute, second = (int(found.group(n)) for n in (1, 2, 3))
    offset_hour, offset_minute = int(found.group(5) or 0), int(found.group(6) or 0)
    if hour > 23 or minute > 59 or second > 60 or offset_hour > 23 or offset_minute > 59:
        return False
    offset = (offset_hour * 60 + offset_minute) * (-1 if found.group(4) == "-" else 1)
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 1439


@FORMATS.checks("date-time")
def is_date_time(value: object) -> bool:
    """RFC 3339 date-time; the offset is part of it, so a local time alone is refused."""
    if not isinstance(value, str):
        return True
    return len(value) > 10 and value[10] in "Tt" and is_date(value[:10]) and is_time(value[11:])


@FORMATS.checks("ipv4")
def is_ipv4(value: object) -> bool:
    return not isinstance(value, str) or _is_address(value, version=4)


@FORMATS.checks("ipv6")
def is_ipv6(value: object) -> bool:
    return not isinstance(value, str) or ("%" not in value and _is_address(value, version=6))


@FORMATS.checks("uuid")
def is_uuid(value: object) -> bool:
    """RFC 4122 text form with its four hyphens."""
    if not isinstance(value, str):
        return True
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


@FORMATS.checks("regex")
def is_regex(value: object) -> bool:
    """An ECMA-262 regular expression."""
    if not isinstance(value, str):
        return True
    try:
        check_pattern(value)
    except PatternProblem:
        return False
    return True


def _is_address(text: str, version: int | None = None) -> bool:
    try:
        return version in (None, ipaddress.ip_address(text).version)
    except ValueError:
        return False
