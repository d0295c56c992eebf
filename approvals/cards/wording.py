"""Words for cards: headlines, names and lengths of time. Plain module.

A headline is made of what the tool is called and of the arguments that a person looks at first. It is a summary and
may be cut; the arguments themselves never are (R11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from runs.visible import visible

_LONGEST_FACT: Final = 60
_LONGEST_HEADLINE: Final = 140

_AMOUNTS: Final = ("amount", "total", "price", "value", "sum")
_CURRENCIES: Final = ("currency", "currency_code", "ccy")
_PEOPLE: Final = ("to", "recipient", "recipients", "email", "user", "username", "channel", "customer")
_THINGS: Final = (
    "path",
    "file",
    "paths",
    "files",
    "url",
    "repository",
    "repo",
    "branch",
    "database",
    "table",
    "query",
    "name",
    "title",
    "subject",
)


def cut(text: str, limit: int) -> str:
    """The first line of a text, at most `limit` characters of it."""
    line = text.strip().split("\n", 1)[0].strip()
    return line if len(line) <= limit and line == text.strip() else f"{line[: limit - 1].rstrip()}…"


def humanise(name: str) -> str:
    """A tool's name as words: `send_email` and `sendEmail` become "Send email"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.sub(r"[_\-./\s]+", " ", words).strip()
    return words[:1].upper() + words[1:].lower() if words else name


def call_headline(title: str, name: str, arguments: Mapping[str, Any]) -> str:
    """What a call would do, e.g. "Refund 2,000.00 EUR for order 1042"."""
    head = cut(visible(title.strip() or humanise(name)), _LONGEST_FACT)
    amount, rest = _amount(arguments), _target(arguments)
    if amount:
        head = f"{head} {amount}" if " " not in head else f"{head}: {amount}"
    elif rest and " " in head and not rest.startswith(("to ", "for ")):
        head = f"{head}:"
    return cut(f"{head} {rest}".strip(), _LONGEST_HEADLINE)


def _amount(arguments: Mapping[str, Any]) -> str:
    """The first amount with its currency. Digits are grouped, never rounded: a headline must not lie."""
    number = next((found for key in _AMOUNTS if (found := _decimal(arguments.get(key))) is not None), None)
    if number is None:
        return ""
    currency = next((arguments[key] for key in _CURRENCIES if isinstance(arguments.get(key), str)), "")
    exponent = number.normalize().as_tuple().exponent
    digits = f"{number:,.2f}" if isinstance(exponent, int) and exponent >= -2 and currency else f"{number:,}"
    return f"{digits} {cut(visible(currency), 12)}".strip()


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 1e15:
        return None
    number = Decimal(repr(value))
    return number if number.is_finite() else None


def _target(arguments: Mapping[str, Any]) -> str:
    """Whom or what the call is about: a recipient, a numbered thing, a path; the first that there is."""
    for key in _PEOPLE:
        if fact := _fact(arguments.get(key), "recipients"):
            return f"to {fact}"
    for key, value in arguments.items():
        if key.lower().endswith(("_id", "Id")) and (fact := _fact(value)):
            return f"for {humanise(visible(key[:-3] if key.endswith('_id') else key[:-2])).lower()} {fact}"
    for key in _THINGS:
        if fact := _fact(arguments.get(key), key):
            return fact
    return ""


def _fact(value: Any, noun: str = "items") -> str:
    if isinstance(value, list):
        return _fact(value[0]) if len(value) == 1 else f"{len(value)} {noun}" if value else ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return cut(visible(str(value)), _LONGEST_FACT) if str(value).strip() else ""


def requests_headline(server: str, requests: list[Mapping[str, Any]]) -> str:
    """What a server asks for: its own words for one request, a count for several, the host for a link."""
    first = requests[0]
    message = cut(visible(str(first.get("message") or "")), _LONGEST_HEADLINE)
    if len(requests) > 1:
        return f"{visible(server)} asks for {len(requests)} things: {cut(message, 80)}"
    if first.get("mode") == "url":
        return f"Open a page at {_host(str(first.get('url') or ''))}"
    return message or f"{visible(server)} asks for input"


def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return cut(visible(host), _LONGEST_FACT) if host else "an address that is not valid"


def questions_headline(texts: list[str]) -> str:
    more = len(texts) - 1
    return cut(visible(texts[0]), _LONGEST_HEADLINE) + (f" (and {more} more)" if more else "")


def plan_headline(text: str) -> str:
    """The first line that says something, and how many steps a numbered or dashed plan has."""
    lines = [line.strip().strip("#*").strip() for line in text.splitlines() if line.strip()]
    steps = [line for line in lines if re.match(r"(\d+[.)]|[-*+])\s", line)]
    first = next((line for line in lines if line not in steps), "")
    if first:
        return f"Plan: {cut(visible(first), 100)}"
    start = re.sub(r"^(\d+[.)]|[-*+])\s+", "", steps[0]) if steps else "empty"
    count = f" in {len(steps)} steps" if len(steps) > 1 else ""
    return f"Plan{count}: {cut(visible(start), 100)}"


def length_words(seconds: float) -> str:
    """A length of time at a glance; the same steps as `clock.js`."""
    if seconds < 60:
        return "under 1 min"
    if seconds < 3600:
        return f"{int(seconds // 60)} min"
    if seconds < 86_400:
        return f"{int(seconds // 3600)} h"
    return f"{int(seconds // 86_400)} d"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
