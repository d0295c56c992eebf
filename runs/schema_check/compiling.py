"""From an untrusted JSON Schema to a validator, or to a SchemaProblem that says why not.

Everything that could go wrong with the schema itself is found here, before a person is asked anything:
size, wrong keywords and types, patterns, references that are remote or lead nowhere, references in a circle.
Nothing is ever fetched: the registry has no way to retrieve (C18).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from runs.canonical import NotJson, canonical_json
from runs.errors import M3Error
from runs.schema_check.formats import FORMATS
from runs.schema_check.keywords import SchemaValidator
from runs.schema_check.patterns import PatternProblem, check_pattern
from runs.schema_check.words import deepest, in_words

MAX_SCHEMA_CHARS = 200_000
MAX_SUBSCHEMAS = 4_000
MAX_COMPILE_SECONDS = 5.0

_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE_MANY = ("allOf", "anyOf", "oneOf")
_REFERENCES = ("$ref", "$dynamicRef")

_Place = tuple[Resource[Any], Any]
"""A subschema and the resolver that knows where it stands."""


class SchemaProblem(M3Error):
    """The JSON Schema itself cannot be used; the message says where and why."""

    code = "schema_problem"
    status = 422


def compiled(schema: Any) -> Any:
    """The validator for `schema`. Raises SchemaProblem; remembers what compiled."""
    try:
        text = canonical_json(schema)
    except NotJson as error:
        raise SchemaProblem(f"The schema is not JSON{_at(error.path)}: {error.message}") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaProblem(f"The schema is longer than {MAX_SCHEMA_CHARS:,} characters.")
    return _compiled_text(text)


@lru_cache(maxsize=128)
def _compiled_text(text: str) -> Any:
    try:
        schema = json.loads(text)
        if isinstance(schema, dict):
            schema.pop("$schema", None)
        _check_keywords(schema)
        _check_subschemas(schema)
    except SchemaProblem:
        raise
    except Exception as error:
        # jsonschema and referencing meet hostile input here, and what they raise is not a closed set.
        raise SchemaProblem(f"The schema cannot be used ({type(error).__name__}).") from error
    return SchemaValidator(schema, registry=Registry(), format_checker=FORMATS)


def _check_keywords(schema: Any) -> None:
    """Against the 2020-12 meta-schema. Its formats are left out: `_check_subschemas` looks at patterns."""
    error: ValidationError | None = next(
        Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), None
    )
    if error is not None:
        error = deepest(error)
        if error.absolute_path and error.absolute_path[-1] == "type":
            raise SchemaProblem(f"The schema has an unknown type{_at(tuple(error.absolute_path))}.")
        raise SchemaProblem(f"The schema is wrong{_at(tuple(error.absolute_path))}: {in_words(error)}")


def _check_subschemas(schema: Any) -> None:
    """Visit every subschema once, those behind references too, and check what the meta-schema cannot say."""
    if not isinstance(schema, dict):
        return
    root = DRAFT202012.create_resource(schema)
    registry: Registry[Any] = Registry()
    resolver = registry.with_resource(root.id() or "", root).crawl().resolver_with_root(root)
    survey = _Survey()
    waiting: list[_Place] = [(root, resolver)]
    while waiting:
        resource, resolver = waiting.pop()
        if isinstance(resource.contents, dict) and id(resource.contents) not in survey.in_place:
            waiting.extend(survey.visit(resource, resolver))
    survey.finish()


class _Survey:
    """What was seen of one schema; `in_place` maps a subschema to those that judge the very same value.

    Subschemas are known by `id`: all of them are parts of one living document.
    """

    def __init__(self) -> None:
        self.in_place: dict[int, set[int]] = {}
        self._keywords: set[str] = set()
        self._referred: set[int] = set()
        self._deadline = time.monotonic() + MAX_COMPILE_SECONDS

    def visit(self, resource: Resource[Any], resolver: Any) -> list[_Place]:
        """Check one subschema and return the places to visit from here."""
        node = resource.contents
        self._check_bounds()
        if "$schema" in node:
            raise SchemaProblem("A part of the schema names a dialect of its own ($schema).")
        _check_patterns(node)
        self._keywords.update(node)
        targets = [self._follow(node[word], resolver) for word in _REFERENCES if word in node]
        same_value = [*_applied_in_place(node), *(target.contents for target, _ in targets)]
        self.in_place[id(node)] = {id(part) for part in same_value if isinstance(part, dict)}
        parts = [(part, resolver.in_subresource(part)) for part in resource.subresources()]
        return [*targets, *parts]

    def finish(self) -> None:
        """Check what only the whole can tell."""
        try:
            TopologicalSorter(self.in_place).prepare()
        except CycleError:
            raise SchemaProblem("The schema refers to itself in a circle and cannot be decided.") from None
        if {"unevaluatedProperties", "patternProperties"} <= self._keywords:
            # jsonschema would match these patterns with Python's own engine, without any bound.
            raise SchemaProblem("unevaluatedProperties together with patternProperties is not supported.")

    def _check_bounds(self) -> None:
        if len(self.in_place) >= MAX_SUBSCHEMAS:
            raise SchemaProblem(f"The schema has more than {MAX_SUBSCHEMAS:,} parts.")
        if time.monotonic() > self._deadline:
            raise SchemaProblem("The schema takes too long to check.")

    def _follow(self, reference: str, resolver: Any) -> _Place:
        """The target of a reference, which need not stand where a schema is expected: check it as one."""
        try:
            found = resolver.lookup(reference)
        except Exception:
            raise SchemaProblem(
                f"The schema refers to {reference[:200]!r}, which is not inside it."
            ) from None
        contents = found.contents
        if isinstance(contents, dict) and id(contents) not in self._referred:
            self._check_bounds()
            self._referred.add(id(contents))
            _check_keywords({key: value for key, value in contents.items() if key != "$schema"})
        elif not isinstance(contents, dict | bool):
            raise SchemaProblem(f"The schema refers to {reference[:200]!r}, which is no schema.")
        return DRAFT202012.create_resource(contents), found.resolver


def _check_patterns(node: dict[str, Any]) -> None:
    for pattern in (*([node["pattern"]] if "pattern" in node else ()), *node.get("patternProperties", ())):
        try:
            check_pattern(pattern)
        except PatternProblem as error:
            raise SchemaProblem(f"The pattern {pattern[:200]!r} does not compile: {error}") from None


def _applied_in_place(node: dict[str, Any]) -> Iterator[Any]:
    """Subschemas that judge the very same value, so that a circle of them would never end."""
    yield from (node[keyword] for keyword in _IN_PLACE_ONE if keyword in node)
    for keyword in _IN_PLACE_MANY:
        yield from node.get(keyword, ())
    yield from node.get("dependentSchemas", {}).values()


def _at(path: tuple[str | int, ...]) -> str:
    """Where in the schema, as ` at /properties/name`, or nothing for its root."""
    return f" at /{'/'.join(str(part) for part in path)}"[:200] if path else ""
