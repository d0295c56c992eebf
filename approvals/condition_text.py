"""A test of an argument as a person types it on a page, and back. Plain module.

A path is written like `customer.email` or `rows[0].to`; a key with other signs in it stands in double quotes. A value
is JSON where it is JSON, else the text itself: 50 is a number, "50" and ann@example.com are texts.
"""

from __future__ import annotations

import json
import re
from typing import Final

from approvals.conditions import ArgumentTest, TestKind
from runs.errors import ModelValidationError
from runs.steps import Json
from runs.strict_json import StrictJsonError, loads

MAX_TYPED: Final = 4000
"""Characters of a typed path or value."""

_STEP: Final = re.compile(r'\[(?P<at>[0-9]{1,9})\]|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<key>[^.\[\]"]+)')
_PLAIN_KEY: Final = re.compile(r'[^.\[\]"\s]+')
_MEANT_AS_JSON: Final = ("{", "[", '"')
_HELP: Final = 'Write it like customer.email or rows[0].to; a key with other signs in it like "a.b".'


def typed_path(text: str) -> tuple[str | int, ...]:
    """The keys and positions of a path; empty text is all arguments. Raises ModelValidationError."""
    text, at = text.strip(), 0
    path: list[str | int] = []
    while at < len(text):
        if path and text[at] != "[":
            at = _after_dot(text, at)
        found = _STEP.match(text, at)
        if found is None:
            raise ModelValidationError(f"The path cannot be read from “{text[at : at + 20]}” on. {_HELP}")
        path.append(_step(found))
        at = found.end()
    return tuple(path)


def typed_value(kind: TestKind, text: str) -> Json:
    """What to compare with. Raises ModelValidationError for broken JSON; what only looks like text is text."""
    if kind is TestKind.GLOB:
        return text
    try:
        return loads(text)
    except StrictJsonError as error:
        if text.lstrip().startswith(_MEANT_AS_JSON):
            raise ModelValidationError(f"This begins like JSON and is none. {error}") from error
        return text


def path_text(path: tuple[str | int, ...]) -> str:
    """What `typed_path` reads as this path."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            word = step if _PLAIN_KEY.fullmatch(step) else json.dumps(step, ensure_ascii=False)
            text += f".{word}" if text else word
    return text


def value_text(test: ArgumentTest) -> str:
    """What `typed_value` reads as the value of this test."""
    if test.kind is TestKind.GLOB:
        return str(test.value)
    if isinstance(test.value, str) and _stays_text(test.value):
        return test.value
    return json.dumps(test.value, ensure_ascii=False)


def _after_dot(text: str, at: int) -> int:
    if text[at] != "." or at + 1 == len(text):
        raise ModelValidationError(f"The path cannot be read from “{text[at : at + 20]}” on. {_HELP}")
    return at + 1


def _step(found: re.Match[str]) -> str | int:
    if found["at"] is not None:
        return int(found["at"])
    if found["key"] is not None:
        return found["key"].strip()
    try:
        return str(loads(found["quoted"]))
    except StrictJsonError as error:
        raise ModelValidationError(f"{found['quoted']} is no quoted key. {_HELP}") from error


def _stays_text(text: str) -> bool:
    """Whether a text may be typed without quotes: it is no JSON, does not look like it, and has no blank ends."""
    if not text or text != text.strip() or text.startswith(_MEANT_AS_JSON) or "\n" in text:
        return False
    try:
        loads(text)
    except StrictJsonError:
        return True
    return False
