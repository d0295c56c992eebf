"""The 2020-12 validator with the keywords that must behave differently for untrusted schemas and for people.

Differences from jsonschema's own: patterns are ECMA-262 and bounded; every keyword evaluation is counted, so
a schema cannot multiply work without end; `multipleOf` reckons in decimals (19.99 is a multiple of 0.01);
`uniqueItems` is linear; errors about a missing or an extra property carry the path of that property, which
is where a form shows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from runs.schema_check.patterns import matches

MAX_STEPS = 50_000
"""Keyword evaluations for one value; a list of 10,000 entries with a few rules each stays below."""

MAX_SECONDS = 5.0
"""For one value, pattern checks in child processes included."""

Keyword = Callable[[Any, Any, Any, Any], Any]


class OutOfWork(Exception):
    """The schema asked for more work on this value than MAX_STEPS or MAX_SECONDS allow."""


@dataclass
class _Budget:
    steps: int
    deadline: float


_budget: ContextVar[_Budget | None] = ContextVar("schema_check_budget", default=None)


@contextmanager
def limited_work(steps: int = MAX_STEPS, seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Inside, keyword evaluations beyond `steps`, or later than `seconds`, raise OutOfWork."""
    token = _budget.set(_Budget(steps=steps, deadline=time.monotonic() + seconds))
    try:
        yield
    finally:
        _budget.reset(token)


def _counted(keyword: Keyword) -> Keyword:
    def evaluate(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _spend()
        yield from keyword(validator, wanted, instance, schema) or ()

    return evaluate


def _spend() -> None:
    budget = _budget.get()
    if budget is None:
        return
    budget.steps -= 1
    if budget.steps < 0 or time.monotonic() > budget.deadline:
        raise OutOfWork


def _pattern(_validator: Any, wanted: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(wanted, instance):
        yield ValidationError("does not match the pattern")


def _pattern_properties(
    validator: Any, wanted: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in wanted.items():
        for name, value in instance.items():
            _spend()
            if matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _properties(
    validator: Any, wanted: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for name, subschema in wanted.items():
        if name not in instance:
            continue
        if subschema is False:
            yield ValidationError("is not asked for", path=[name], validator="additionalProperties")
        else:
            yield from validator.descend(instance[name], subschema, path=name, schema_path=name)


def _additional_properties(
    validator: Any, wanted: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    named = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        _spend()
        if name in named or any(matches(pattern, name) for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError("is not asked for", path=[name])
        else:
            yield from validator.descend(value, wanted, path=name)


def _required(_validator: Any, wanted: list[str], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in wanted:
            if name not in instance:
                yield ValidationError("is required", path=[name])


def _dependent_required(
    _validator: Any, wanted: Mapping[str, list[str]], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for name, needed in wanted.items():
        for other in needed if name in instance else ():
            if other not in instance:
                yield ValidationError("is required", path=[other], validator="required")


def _multiple_of(_validator: Any, wanted: float, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if _decimal(instance) % _decimal(wanted) != 0:
        yield ValidationError("is not a multiple")


def _decimal(number: float) -> Fraction:
    """The number as its shortest decimal text says it, which is what a person typed."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    seen: set[Any] = set()
    for item in instance:
        identity = _identity(item)
        if identity in seen:
            yield ValidationError("has the same entry twice")
            return
        seen.add(identity)


def _identity(value: Any) -> Any:
    """A hashable stand-in under which values are equal as JSON Schema says: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return "object", frozenset((key, _identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(_identity(item) for item in value)
    if isinstance(value, bool) or value is None:
        return str(value)
    return ("text", value) if isinstance(value, str) else ("number", value)


_OWN: dict[str, Keyword] = {
    "pattern": _pattern,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "required": _required,
    "dependentRequired": _dependent_required,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}

SchemaValidator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={name: _counted(rule) for name, rule in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)
"""Build with an already checked schema (`runs.schema_check.compiling`) and use inside `limited_work`."""
