"""The page that shows the OpenAPI description to people: rendered here, without a script or another host."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from m3web.api.schema import document

_COMPONENT: Final = "#/components/schemas/"
_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} members",
}
_HUGE: Final = 2**53
"""A bound beyond this tells a reader nothing."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A parameter, or a field of a body or answer. `ref` is the shape that its values have, or are lists of."""

    name: str
    kind: str
    ref: str
    required: bool
    says: str


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One status that an address may answer with."""

    status: str
    says: str
    ref: str
    media: str


@dataclass(frozen=True, kw_only=True)
class Address:
    """One method of one address."""

    anchor: str
    tag: str
    method: str
    path: str
    says: str
    parameters: tuple[Member, ...]
    body: str
    answers: tuple[Answered, ...]


@dataclass(frozen=True, kw_only=True)
class ShapeShown:
    """One body or answer with its fields, and examples as JSON text."""

    name: str
    says: str
    members: tuple[Member, ...]
    examples: tuple[str, ...]


def addresses(described: Mapping[str, Any]) -> Iterator[Address]:
    """Every address of an OpenAPI description, in its order."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            yield Address(
                anchor=operation["operationId"],
                tag=operation["tags"][0],
                method=method.upper(),
                path=path,
                says=operation["summary"],
                parameters=tuple(
                    _member(
                        one["name"], one["schema"], one.get("required", False), one.get("description", "")
                    )
                    for one in operation.get("parameters", ())
                ),
                body=next((_ref(media["schema"]) for media in body.values()), ""),
                answers=tuple(_answers(operation["responses"])),
            )


def shapes(described: Mapping[str, Any]) -> Iterator[ShapeShown]:
    """Every body and answer of an OpenAPI description, by name."""
    for name, schema in sorted(described["components"]["schemas"].items()):
        required = schema.get("required", ())
        yield ShapeShown(
            name=name,
            says=schema.get("description", ""),
            members=tuple(
                _member(field, inner, field in required, inner.get("description", ""))
                for field, inner in schema.get("properties", {}).items()
            ),
            examples=tuple(
                json.dumps(one, indent=2, ensure_ascii=False) for one in schema.get("examples", ())
            ),
        )


def _answers(responses: Mapping[str, Any]) -> Iterator[Answered]:
    for status, response in sorted(responses.items()):
        content = response.get("content") or {"": {"schema": {}}}
        for media, described in content.items():
            yield Answered(
                status=status, says=response["description"], ref=_ref(described["schema"]), media=media
            )


def _member(name: str, schema: Mapping[str, Any], required: bool, says: str) -> Member:
    bounds = [
        sentence.format(schema[word])
        for word, sentence in _BOUNDS.items()
        if word in schema and schema[word] < _HUGE
    ]
    bounds = ["not empty" if bound == _BOUNDS["minLength"].format(1) else bound for bound in bounds]
    default = [f"default {json.dumps(schema['default'])}"] if "default" in schema else []
    kind = ", ".join([_kind(schema), *bounds, *default])
    return Member(name=name, kind=kind, ref=_ref(schema), required=required, says=says)


def _kind(schema: Mapping[str, Any]) -> str:
    """In words: "text", "one of run, user, account, or null"."""
    if "enum" in schema:
        words = [json.dumps(word) if not isinstance(word, str) else word for word in schema["enum"]]
        return f"one of {', '.join(words)}"
    if "const" in schema:
        return json.dumps(schema["const"])
    either = schema.get("anyOf") or schema.get("oneOf")
    if either:
        return " or ".join(dict.fromkeys(_kind(one) for one in either))
    if "$ref" in schema or "allOf" in schema:
        return "object"
    if "type" not in schema:
        return "any value"
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join(_word(one, schema) for one in types)


def _word(kind: str, schema: Mapping[str, Any]) -> str:
    if kind == "array":
        return f"list of {_kind(schema['items'])}"
    if kind == "string":
        return {"date-time": "moment (ISO 8601)", "uuid": "UUID", "email": "email address"}.get(
            schema.get("format", ""), "text"
        )
    return {"integer": "whole number", "boolean": "true or false"}.get(kind, kind)


def _ref(schema: Mapping[str, Any]) -> str:
    """The name of the first shape that a schema refers to, or nothing."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_COMPONENT)
    inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    inner += [
        schema[word] for word in ("items", "additionalProperties") if isinstance(schema.get(word), dict)
    ]
    return next(filter(None, map(_ref, inner)), "")


@functools.cache
def _context() -> dict[str, Any]:
    described = document()
    found = sorted(addresses(described), key=lambda address: address.tag)
    return {
        "info": described["info"],
        "groups": [(tag, list(members)) for tag, members in groupby(found, key=lambda one: one.tag)],
        "shapes": list(shapes(described)),
    }


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Nobody has to sign in: it says nothing about an installation."""
    return render(request, "api/docs.html", _context())
