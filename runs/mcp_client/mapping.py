"""Between the wire and our values. The one place that says which server messages are acceptable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from runs.canonical import NotJson, digest

from .values import (
    ELICITATION_KEY,
    MAX_DEFINITION_BYTES,
    MAX_REQUESTS_PER_ROUND,
    Answer,
    FormRequest,
    Json,
    Operation,
    PromptDefinition,
    Request,
    ResourceDefinition,
    ToolDefinition,
    UrlRequest,
)

MAX_TEXT = 20_000
"""Longest prompt or description kept, in characters; longer texts are cut with an ellipsis."""

MAX_NAME = 256
MAX_URL = 4096
METHODS = {"tool": "tools/call", "prompt": "prompts/get", "resource": "resources/read"}


class UnacceptableError(Exception):
    """A message of a server that we cannot use; the text is a sentence for a person.

    `unsupported` is True for something the protocol knows and we do not offer.
    """

    def __init__(self, message: str, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.unsupported = unsupported


def clip(value: object, limit: int = MAX_TEXT) -> str:
    """A server's text, bounded; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= limit else value[: limit - 1] + "…"


# --- requests ---------------------------------------------------------------------------------------------


def operation_params(operation: Operation, *, modern: bool) -> dict[str, Any]:
    """The params of the operation's request; answers and state exist on the modern protocol alone."""
    if operation.kind == "resource":
        params: dict[str, Any] = {"uri": operation.name}
    else:
        params = {"name": operation.name, "arguments": dict(operation.arguments)}
    if modern and operation.input_responses is not None:
        params["inputResponses"] = {key: dict(value) for key, value in operation.input_responses.items()}
    if modern and operation.request_state is not None:
        params["requestState"] = operation.request_state
    return params


def answer_to_wire(answer: Answer) -> dict[str, Any]:
    """An answer as an ElicitResult; content goes with accept only."""
    if answer.action == "accept" and answer.content is not None:
        return {"action": "accept", "content": dict(answer.content)}
    return {"action": answer.action}


def request_from_wire(key: str, params: Mapping[str, Json]) -> Request:
    """A form or URL request from the params of `elicitation/create`. Raises UnacceptableError."""
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    message = clip(params.get("message"))
    mode = params.get("mode", "form")
    if mode == "url":
        return UrlRequest(
            key=key,
            message=message,
            url=_web_address(params.get("url")),
            elicitation_id=clip(params.get("elicitationId"), MAX_NAME) or None,
            meta=meta,
        )
    if mode != "form":
        raise UnacceptableError(
            "The server asked for input in a mode that is neither form nor URL.", unsupported=True
        )
    return FormRequest(
        key=key, message=message, schema=_form_schema(params.get("requestedSchema")), meta=meta
    )


def request_to_wire(request: Request) -> dict[str, Any]:
    """The params of `elicitation/create` of which `request_from_wire` made this request."""
    meta = {"_meta": dict(request.meta)} if request.meta else {}
    if isinstance(request, FormRequest):
        return {"mode": "form", "message": request.message, "requestedSchema": dict(request.schema), **meta}
    identifier = {} if request.elicitation_id is None else {"elicitationId": request.elicitation_id}
    return {"mode": "url", "message": request.message, "url": request.url, **identifier, **meta}


def requests_from_wire(raw: Mapping[str, Json]) -> dict[str, Request]:
    """The keyed requests of an `input_required` result. Raises UnacceptableError."""
    wire = raw.get("inputRequests")
    if wire is None:
        wire = {}
    if not isinstance(wire, dict):
        raise UnacceptableError("The server asked for input without naming its requests by key.")
    if len(wire) > MAX_REQUESTS_PER_ROUND:
        raise UnacceptableError(f"The server asked more than {MAX_REQUESTS_PER_ROUND} questions at once.")
    if not wire and not isinstance(raw.get("requestState"), str):
        raise UnacceptableError("The server asked for input but sent neither a request nor a state.")
    return {key: _keyed_request(key, item) for key, item in wire.items()}


def _keyed_request(key: str, item: Json) -> Request:
    if not key or len(key) > MAX_NAME:
        raise UnacceptableError(
            f"The server named a request by a key that is empty or over {MAX_NAME} characters."
        )
    method = item.get("method") if isinstance(item, dict) else None
    if method != "elicitation/create":
        raise UnacceptableError(
            f"The server asked for {clip(method, 60) or 'something without a name'}, "
            "which is not offered here. Only forms and URLs are.",
            unsupported=True,
        )
    params = item.get("params")
    if not isinstance(params, dict):
        raise UnacceptableError(f"The server's request “{clip(key, 60)}” has no params.")
    return request_from_wire(key, params)


def urls_from_error(data: Json) -> dict[str, UrlRequest]:
    """The URL requests of a -32042 error. Raises UnacceptableError."""
    wire = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(wire, list) or not wire or len(wire) > MAX_REQUESTS_PER_ROUND:
        raise UnacceptableError("The server said that a URL must be opened first, but did not say which.")
    found: dict[str, UrlRequest] = {}
    for index, params in enumerate(wire, start=1):
        key = ELICITATION_KEY if len(wire) == 1 else f"{ELICITATION_KEY}_{index}"
        if not isinstance(params, dict):
            raise UnacceptableError(
                "The server said that a URL must be opened first, but sent something else."
            )
        found[key] = UrlRequest(
            key=key,
            message=clip(params.get("message")),
            url=_web_address(params.get("url")),
            elicitation_id=clip(params.get("elicitationId"), MAX_NAME) or None,
        )
    return found


def _form_schema(schema: Json) -> dict[str, Json]:
    if not isinstance(schema, dict):
        raise UnacceptableError("The server asked for a form without a schema.")
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise UnacceptableError("The server asked for a form whose schema does not describe an object.")
    if json_size(schema) > MAX_DEFINITION_BYTES:
        raise UnacceptableError(f"The server asked for a form over {MAX_DEFINITION_BYTES // 1024} KB.")
    return schema


def _web_address(url: Json) -> str:
    """A URL a person may be sent to: http or https with a host. The page warns of the rest (R42)."""
    refused = UnacceptableError(
        "The server asked to open something that is not a web address (http or https)."
    )
    if (
        not isinstance(url, str)
        or len(url) > MAX_URL
        or any(c <= " " or c == "\x7f" or c == "\\" for c in url)
    ):
        raise refused
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise refused from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refused
    return url


# --- definitions ------------------------------------------------------------------------------------------


def tool_from_wire(raw: Json) -> ToolDefinition:
    """A tool definition. Raises UnacceptableError with a sentence that names the tool, if it has a name."""
    name = _name(raw, "name", "tool")
    if json_size(raw) > MAX_DEFINITION_BYTES:
        raise UnacceptableError(f"The tool “{name}” has a definition over {MAX_DEFINITION_BYTES // 1024} KB.")
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise UnacceptableError(f"The tool “{name}” has an input schema that does not describe an object.")
    if not isinstance(schema.get("properties", {}), dict):
        raise UnacceptableError(f"The tool “{name}” has an input schema whose properties are not an object.")
    output = raw.get("outputSchema")
    if output is not None and not isinstance(output, dict):
        raise UnacceptableError(f"The tool “{name}” has an output schema that is not an object.")
    annotations = raw.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    described = {"name": name, "description": raw.get("description"), "input": schema, "output": output}
    try:
        identity = digest(described)
    except NotJson as error:
        raise UnacceptableError(
            f"The tool “{name}” has a definition that is not plain JSON: {error.message}"
        ) from None
    return ToolDefinition(
        name=name,
        title=clip(raw.get("title") or annotations.get("title"), MAX_NAME) or None,
        description=clip(raw.get("description")),
        input_schema=schema,
        output_schema=output,
        annotations=annotations,
        digest=identity,
    )


def prompt_from_wire(raw: Json) -> PromptDefinition:
    """A prompt definition. Raises UnacceptableError."""
    name = _name(raw, "name", "prompt")
    arguments = raw.get("arguments")
    arguments = arguments if isinstance(arguments, list) else []
    return PromptDefinition(
        name=name,
        title=clip(raw.get("title"), MAX_NAME) or None,
        description=clip(raw.get("description")),
        arguments=tuple(item for item in arguments if isinstance(item, dict)),
    )


def resource_from_wire(raw: Json, *, template: bool) -> ResourceDefinition:
    """A resource or resource template. Raises UnacceptableError."""
    uri = _name(raw, "uriTemplate" if template else "uri", "resource", limit=MAX_URL)
    return ResourceDefinition(
        uri=uri,
        name=clip(raw.get("name"), MAX_NAME) or clip(uri, MAX_NAME),
        title=clip(raw.get("title"), MAX_NAME) or None,
        description=clip(raw.get("description")),
        mime_type=clip(raw.get("mimeType"), MAX_NAME) or None,
        is_template=template,
    )


def _name(raw: Json, field: str, kind: str, *, limit: int = MAX_NAME) -> str:
    name = raw.get(field) if isinstance(raw, dict) else None
    if not isinstance(name, str) or not name:
        raise UnacceptableError(f"A {kind} without a {field} was left out.")
    if len(name) > limit or not name.isprintable():
        raise UnacceptableError(
            f"A {kind} with an unusable {field} was left out: “{clip(ascii(name)[1:-1], 60)}”."
        )
    return name


def json_size(value: Json) -> int:
    """Size of a value as compact JSON, in bytes."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
