"""`{{ JMESPath }}` in playbook texts and arguments (design section 3).

Plain module. What an expression yields is a value and is never read as a template again: a tool's result
cannot smuggle in an expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import jmespath
from jmespath.parser import ParsedResult

from runs.canonical import NotJson, canonical_json
from runs.steps import Json

MAX_EXPRESSION: Final = 2_000
MAX_RENDERED: Final = 1_000_000
"""Characters of one expression, and of the JSON or text that a template may grow to."""

_QUOTES: Final = frozenset("'\"`")


class TemplateError(Exception):
    """A template cannot be read or evaluated; `where` is its place, "" if only the caller knows."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where


@dataclass(frozen=True)
class Expression:
    """A compiled JMESPath expression."""

    source: str
    compiled: ParsedResult

    def evaluate(self, env: Mapping[str, Json]) -> Json:
        """The value over `env`, which may be anything that JMESPath can yield. Raises TemplateError."""
        try:
            return self.compiled.search(env)
        # JMESPathError is a ValueError; its functions let the other kinds through for odd arguments.
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
            raise TemplateError(f"{_short(self.source)} failed: {_short(str(error))}") from error


@lru_cache(maxsize=256)
def compile_expression(source: str) -> Expression:
    """Compile one bare JMESPath expression, as `if` has it. Raises TemplateError."""
    if len(source) > MAX_EXPRESSION:
        raise TemplateError(f"an expression has at most {MAX_EXPRESSION} characters")
    if not source.strip():
        raise TemplateError("the expression is empty")
    try:
        return Expression(source, jmespath.compile(source))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise TemplateError(f"{_short(source)} is not JMESPath: {_short(str(error))}") from error


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[str | Expression, ...]:
    """Cut a text into plain pieces and expressions. Raises TemplateError."""
    parts: list[str | Expression] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = _end_of_expression(text, start + 2)
        if start > at:
            parts.append(text[at:start])
        parts.append(compile_expression(text[start + 2 : end].strip()))
        at = end + 2
    if at < len(text):
        parts.append(text[at:])
    return tuple(parts)


def _end_of_expression(text: str, at: int) -> int:
    """Where the `}}` of an expression stands: outside quotes and outside inner braces."""
    depth, quote = 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in _QUOTES:
            quote = char
        elif char == "{":
            depth += 1
        elif char == "}":
            if depth == 0 and text.startswith("}}", at):
                return at
            depth -= 1
        at += 1
    raise TemplateError("an expression that starts with {{ has no }}")


def is_template(text: str) -> bool:
    """Whether a text holds an expression."""
    return "{{" in text


def is_only_expression(text: str) -> bool:
    """Whether the text is nothing but one `{{ e }}`, whose value keeps its JSON type."""
    parts = parse(text)
    return len(parts) == 1 and isinstance(parts[0], Expression)


def render(value: Json, env: Mapping[str, Json], where: str) -> Json:
    """A copy of a JSON value with every template in its texts filled in; `where` is its place, for errors."""
    if isinstance(value, str):
        return _render_string(value, env, where)
    if isinstance(value, Mapping):
        return {key: render(inner, env, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [render(inner, env, f"{where}[{index}]") for index, inner in enumerate(value)]
    return value


def _render_string(text: str, env: Mapping[str, Json], where: str) -> Json:
    with _at(where):
        parts = parse(text)
        if len(parts) == 1 and isinstance(parts[0], Expression):
            value = parts[0].evaluate(env)
            _json(value)
            return value
    return render_text(text, env, where)


def render_text(text: str, env: Mapping[str, Json], where: str) -> str:
    """The text with every expression in it as text: null is empty, objects and numbers are JSON."""
    with _at(where):
        parts = [part if isinstance(part, str) else _as_text(part.evaluate(env)) for part in parse(text)]
        return _bounded("".join(parts))


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Give the place to an error that does not know it."""
    try:
        yield
    except TemplateError as error:
        raise TemplateError(error.message, where) from error


def _as_text(value: Json) -> str:
    if value is None:
        return ""
    text = _json(value)
    return value if isinstance(value, str) else text


def _json(value: Json) -> str:
    try:
        return _bounded(canonical_json(value))
    except NotJson as error:
        raise TemplateError(f"the value is not JSON: {error.message}") from error


def _bounded(text: str) -> str:
    if len(text) > MAX_RENDERED:
        raise TemplateError(f"the value is longer than {MAX_RENDERED:,} characters")
    return text


def holds(expression: str, env: Mapping[str, Json], where: str) -> bool:
    """Whether an `if` holds as JMESPath sees it: null, false and empty texts, lists and objects do not."""
    with _at(where):
        value = compile_expression(expression).evaluate(env)
    return not (value is None or value is False or (isinstance(value, str | list | Mapping) and not value))


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 160 else f"{one_line[:160]}…"
