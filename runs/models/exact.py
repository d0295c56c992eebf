"""Fields that give back exactly what they were given, on every database.

What servers, agents and people write may hold the character NUL, which PostgreSQL stores in no text and no JSON, or
half a character (an unpaired surrogate), which no database stores. Both are legal in JSON. They are kept as an escape:
a code point that Unicode keeps for a program's own use, followed by the four hexadecimal digits of what stood there.

JSON is stored as `json` on PostgreSQL, never as `jsonb`, which would sort the keys (the order of a form's fields),
and write numbers anew.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.fields.json import HasKey, KeyTransform, KeyTransformFactory

if TYPE_CHECKING:
    _TextField = models.TextField[Any, Any]
else:
    _TextField = models.TextField

MARK = "\ufdd0"
"""Stands before the four digits of an escaped code point; itself escaped too, so that every text can be stored."""

_encode = json.JSONEncoder(ensure_ascii=False).encode

_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_ESCAPED = re.compile(f"{MARK}(0000|d[89a-f][0-9a-f]{{2}}|fdd0)")
_JSON_ESCAPE = re.compile(r"\\u0000|\\.")
"""Every escape of a JSON text from its backslash on, so that a backslash before `u0000` is not mistaken for one."""


def storable(text: str) -> str:
    """`text` without what a database cannot hold; `original` gives it back."""
    return _UNSTORABLE.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def original(text: str) -> str:
    """What `storable` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if MARK in text else text


def is_plain(text: str) -> bool:
    """Whether a text needs no escape; what names something must be plain, because it is looked up as it is."""
    return _UNSTORABLE.search(text) is None


def is_line(text: str) -> bool:
    """Whether a text may be somebody's or something's name: plain, and without control characters (those below the
    space, and DEL), which would break the lines of lists and logs that it stands in."""
    return is_plain(text) and _CONTROL.search(text) is None


def shown(text: str, most: int) -> str:
    """A text that is only shown, for a column of `most` characters: with a sign for what cannot be stored there."""
    return _UNSTORABLE.sub("\ufffd", text[:most])


def storable_json(value: Any, encoder: type[json.JSONEncoder] | None = None) -> str:
    """`value` as JSON whose texts every database can hold; `original_json` gives it back."""
    text = storable(_encode(value) if encoder is None else json.dumps(value, ensure_ascii=False, cls=encoder))
    if "\\u0000" not in text:
        return text
    return _JSON_ESCAPE.sub(lambda found: f"{MARK}0000" if found[0] == "\\u0000" else found[0], text)


def original_json(text: str, decoder: type[json.JSONDecoder] | None = None) -> Any:
    """What `storable_json` was given."""
    return json.loads(original(text.replace(f"{MARK}0000", "\\u0000")), cls=decoder)


class ExactText(_TextField):
    """A text of any characters. Not for names that are looked up or shown in SQL: what may stand there is checked."""

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return storable(prepared) if isinstance(prepared, str) else prepared

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return None if value is None else original(value)


class ExactJSON(models.JSONField):
    """JSON with its keys in their order and its numbers as they were written."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if isinstance(value, models.Value):
            value = value.value
        return value if hasattr(value, "as_sql") else storable_json(value, self.encoder)

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """As text: the driver would read `json` by itself, and nobody could tell "1" from 1 afterwards."""
        if compiler.connection.vendor == "postgresql":
            return f"({sql})::text", params
        return sql, params

    def get_transform(self, lookup_name: str) -> Any:
        found = super().get_transform(lookup_name)
        return _KeyFactory(lookup_name) if isinstance(found, KeyTransformFactory) else found

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is None or not isinstance(value, str):
            return value  # a number or a truth value out of a part of the JSON, on SQLite
        return original_json(value, self.decoder)


class _Key(KeyTransform):
    """A part of the JSON, found and compared as `jsonb`: `json` has no equality on PostgreSQL."""

    def preprocess_lhs(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any, list[str]]:
        lhs, params, keys = super().preprocess_lhs(compiler, connection)
        return (f"({lhs})::jsonb" if connection.vendor == "postgresql" else lhs), params, keys


@ExactJSON.register_lookup
class _HasKey(HasKey):
    """Whether there is such a key, which PostgreSQL knows of `jsonb` only."""

    def process_lhs(self, compiler: Any, connection: BaseDatabaseWrapper, lhs: Any = None) -> tuple[str, Any]:
        sql, params = super().process_lhs(compiler, connection, lhs)
        return (f"({sql})::jsonb" if connection.vendor == "postgresql" else sql), params


class _KeyFactory:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> _Key:
        return _Key(self.name, *args, **kwargs)
