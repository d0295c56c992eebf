"""The OpenAPI 3.1 description of the API, made from the routes, the serializers and `schema_operations`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from m3web.api import schema_fields
from m3web.api.errors import TYPES
from m3web.api.schema_examples import EXAMPLES
from m3web.api.schema_operations import OPERATIONS, Operation, Shape
from runs.api.idempotency import HEADER, REPLAYED
from runs.idempotency import MAX_KEY

__all__ = ["Described", "address_of", "document", "schema", "schema_fields"]

PREFIX: Final = "/api/v2/"
SSE: Final = "text/event-stream"
JSON: Final = "application/json"

EVENTS: Final[dict[str, Any]] = {
    "description": "Server-sent events; the data of each is a JSON object whose `type` says what happened."
}
"""OpenAPI 3.1 has no words for the parts of a stream, and a type would be that of none of them."""

MEANINGS: Final[Mapping[str, str]] = {
    "limit": "How many rows at most.",
    "starting_after": "The `next_starting_after` of the page before.",
    "user_id": "Your own id of the end user; left out, what belongs to none.",
    "rounds user_id": "Only what is for this end user, by your own id.",
    "events user_id": "Only what is for this end user, by your own id.",
    **{
        f"{{{one}_id}} user_id": "One that is not for this end user, by your own id, is a 404."
        for one in ("agent", "round", "run", "task")
    },
    "fields": "`summary` leaves out what may be long.",
    "include_end_user_runs": "Those of every end user too.",
    "include_gone": "Those too that the server no longer lists.",
    "status": "Only what is in this state.",
    "rounds status": "Only what waits, or everything.",
    "sort": "`priority`: those that wait for a person before all others.",
}
"""What parameters mean, by name, or by resource and name where they mean something else there; in the address of a
single thing, by its variable."""

REFUSALS: Final[Mapping[int, str]] = {
    401: "No valid API key and no session",
    403: "The role does not permit it",
    404: "Not there, or not yours",
    409: "No longer in a state that permits it",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "What was sent does not fit; nothing has changed",
}
_REFERENCE = re.compile(r"\s*\([^()]*\b(?:m8tes-http [\d.]+|design section[s]? \d+|[ACR]\d+)[^()]*\)")


class Mistake(serializers.Serializer[Any]):
    """One field that is wrong."""

    path = serializers.ListField(child=serializers.JSONField())
    message = serializers.CharField()


class Details(serializers.Serializer[Any]):
    """Facts for a program: the code again, for a 422 each mistake, else the present state."""

    error_code = serializers.CharField()
    fields = Mistake(many=True, required=False)  # type: ignore[assignment]  # a field, not the base's attribute


class Refusal(serializers.Serializer[Any]):
    """Why nothing was done. `error_code` is stable."""

    type = serializers.ChoiceField(choices=sorted({*TYPES.values(), "api_error", "invalid_request_error"}))
    message = serializers.CharField()
    code = serializers.IntegerField(help_text="The HTTP status.")
    error_code = serializers.CharField()
    request_id = serializers.CharField()
    details = Details()


class Error(serializers.Serializer[Any]):
    """The one shape of every refusal."""

    error = Refusal()


@functools.cache
def page_of(shape: Shape) -> Shape:
    """The list envelope around `shape`; its cursor is an id, or a sequence number."""
    cursor: type[serializers.Field[Any, Any, Any, Any]] = (
        serializers.CharField
        if isinstance(shape().fields.get("id"), serializers.CharField)
        else serializers.IntegerField
    )
    members = {
        "__doc__": "One page of a list.",
        "data": shape(many=True),
        "has_more": serializers.BooleanField(),
        "next_starting_after": cursor(allow_null=True),
    }
    return type(f"{shape.__name__}Page", (serializers.Serializer,), members)


def address_of(path: str) -> str:
    """The address under /api/v2/."""
    return path.removeprefix(PREFIX)


class Described(AutoSchema):
    """Describes a view by its entry in OPERATIONS; a view without one is no part of the description."""

    @property
    def entry(self) -> Operation | None:
        return OPERATIONS.get(f"{self.method} {address_of(self.path)}")

    @property
    def operation(self) -> Operation:
        if self.entry is None:
            raise LookupError(f"{self.method} {self.path} is not described.")
        return self.entry

    def is_excluded(self) -> bool:
        return self.entry is None

    def get_operation_id(self) -> str:
        """Such as `post_runs_reply`: the method and the fixed words of the address."""
        words = re.sub(r"\{\w+\}", "one", address_of(self.path)).strip("/")
        return "_".join([self.method.lower(), *re.split(r"[/-]", words)])

    def get_summary(self) -> str:
        return self.operation.says

    def get_description(self) -> str:  # type: ignore[override]  # as in the base that it overrides
        return ""

    def get_tags(self) -> list[str]:
        return [address_of(self.path).split("/")[0]]

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = [self.operation.query] if self.operation.query else []
        if self.operation.once:
            parameters += [
                OpenApiParameter(
                    HEADER,
                    {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$"},
                    OpenApiParameter.HEADER,
                    description="The same key with the same request gives the same run, however often it is sent.",
                ),
                OpenApiParameter(
                    REPLAYED, str, OpenApiParameter.HEADER, response=[200], description="Set on a replay."
                ),
            ]
        return parameters

    def get_request_serializer(self) -> Any:
        return self.operation.body

    def get_response_serializers(self) -> dict[Any, Any]:  # type: ignore[override]  # its type forgets this form
        found: dict[Any, Any] = {} if self.operation.refused else dict(self._successes())
        for status in sorted(self._refusals()):
            found[status] = OpenApiResponse(Error, description=REFUSALS[status])
        return found

    def _successes(self) -> Iterator[tuple[Any, Any]]:
        entry = self.operation
        if entry.answer is not None:
            shape = self._answer(entry, entry.answer)
            yield (entry.status, JSON), OpenApiResponse(shape, description="As it is now")
            if entry.once and entry.status != 200:
                before = "What came of the same request before, or the run as events if `stream` is true"
                yield (200, JSON), OpenApiResponse(shape, description=before)
        elif not entry.streams:
            yield entry.status, OpenApiResponse(None, description="Done; there is no body")
        if entry.streams:
            yield (200, SSE), OpenApiResponse(EVENTS, description="Server-sent events")

    def _answer(self, entry: Operation, answer: Shape) -> Any:
        if entry.line is not None:
            lines = [self.resolve_serializer(one, "response").ref for one in (answer, entry.line)]
            return {
                "allOf": [self.resolve_serializer(page_of(entry.line), "response").ref],
                "properties": {"data": {"items": {"anyOf": lines}}},
            }
        return page_of(answer) if entry.page else answer(many=True) if entry.array else answer

    def _refusals(self) -> set[int]:
        entry = self.operation
        statuses = {401, 403, *entry.refused}
        if "{" in self.path or entry.query or entry.body:
            statuses.add(404)
        if entry.conflicts:
            statuses.add(409)
        if entry.query or entry.body:
            statuses.add(422)
        if self.method not in SAFE_METHODS:
            statuses |= {413}
        if entry.body:
            statuses |= {415}
        return statuses

    def _get_request_for_media_type(
        self, serializer: Any, direction: Any = "request"
    ) -> tuple[dict[str, Any] | None, bool]:
        """A PATCH here needs what its body says it needs; the framework's would need nothing."""
        if serializer is None:
            return None, False
        component = self.resolve_serializer(serializer, direction)
        return component.ref, "required" in component.schema


def postprocess(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Examples, links from what was made to what can be done with it, and descriptions without our own references."""
    for name, component in result["components"]["schemas"].items():
        if name in EXAMPLES:
            component["examples"] = EXAMPLES[name]
    for path, methods in result["paths"].items():
        for parameter in [one for operation in methods.values() for one in operation.get("parameters", ())]:
            name, about = parameter["name"], re.search(r"\{\w+\}", path) or re.match(r"\w+", address_of(path))
            meaning = MEANINGS.get(f"{about[0]} {name}" if about else name, MEANINGS.get(name))
            if meaning and parameter["in"] == "query":
                parameter.setdefault("description", meaning)
            if "enum" in parameter["schema"]:
                parameter["schema"].pop("minLength", None)
    _mend(result)
    _link(result["paths"])
    return result


def _mend(node: Any) -> None:
    """What the generator writes of null is mended, and our references are for us.

    Any value or null is any value; as "one of" the two, null would be both and so forbidden. A word or null is one of
    the words or null; without null among the words it would be forbidden too.
    """
    if isinstance(node, list):
        for inner in node:
            _mend(inner)
    if not isinstance(node, dict):
        return
    if node.get("oneOf") == [{}, {"type": "null"}]:
        del node["oneOf"]
    if "null" in node.get("type", ()) and isinstance(node.get("enum"), list) and None not in node["enum"]:
        node["enum"] = [*node["enum"], None]
    if isinstance(node.get("description"), str):
        node["description"] = _REFERENCE.sub("", " ".join(node["description"].split()))
    for inner in node.values():
        _mend(inner)


def _link(paths: Mapping[str, Mapping[str, Any]]) -> None:
    """What can be done with each thing that was made or is listed: with one made, and with the first one of a page."""
    for path, methods in paths.items():
        for method, status, where in (
            ("post", "201", "$response.body#"),
            ("get", "200", "$response.body#/data/0"),
        ):
            answer = methods.get(method, {}).get("responses", {}).get(status)
            operations = list(_about(path, paths))
            if answer is not None and operations:
                answer["links"] = {
                    one["operationId"]: _to(one, path, variable, where) for one, variable in operations
                }


def _about(path: str, paths: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The operations on one member of the collection at `path`, each with the name of the member's id."""
    for inner, methods in paths.items():
        match = re.fullmatch(rf"{re.escape(path.rstrip('/'))}/\{{(\w+)\}}(/[^{{}}]*)?", inner)
        if match:
            yield from ((operation, match[1]) for operation in methods.values())


def _to(operation: Mapping[str, Any], path: str, variable: str, where: str) -> dict[str, Any]:
    given = {name: f"$request.path.{name}" for name in re.findall(r"\{(\w+)\}", path)}
    member = "user_id" if variable == "user_id" else "id"
    return {
        "operationId": operation["operationId"],
        "parameters": {**given, variable: f"{where}/{member}"},
    }


@functools.cache
def document() -> dict[str, Any]:
    """The whole description; it follows from the code alone, so it is made once per process."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


@require_safe
def schema(request: HttpRequest) -> JsonResponse:
    """The description as JSON. It says nothing about an installation, so nobody has to sign in for it."""
    return JsonResponse(document())
