"""Reading a request body: JSON that the database can hold, or a refusal that says where it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from runs import strict_json
from runs.canonical import NotJson, canonical_json
from runs.errors import ModelValidationError

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of NUL in canonical text, which escapes nothing but what JSON demands."""


class JsonBody(BaseParser):
    """Everything after this has plain values: finite, at most a hundred levels deep, whole characters, no NUL.

    Python's reader lets 1e999, unpaired surrogates and endless nesting through; each would be a failure of the
    database later, and so of ours. The length is bounded by `m3web.middleware.BoundedBodyMiddleware`.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value of the body. Raises ParseError for what is no JSON, ModelValidationError as above."""
        value = _loaded(stream.read())
        try:
            text = canonical_json(value)
        except NotJson as error:
            raise _unusable(error.path, error.message) from error
        if _NUL.search(text):
            raise _unusable((), "Has a NUL character in a text.")
        return value


def _loaded(raw: bytes) -> Any:
    try:
        return strict_json.loads(raw.decode("utf-8"))
    except ValueError as error:  # syntax, an encoding that is not UTF-8, or a number of thousands of digits
        raise ParseError(str(error)) from error


def _unusable(path: tuple[str | int, ...], message: str) -> ModelValidationError:
    return ModelValidationError(
        "The body holds a value that cannot be stored. Correct the field named.",
        details={"fields": [{"path": list(path), "message": message}]},
    )
