"""One row as JSON, and back, with nothing lost on the way: microseconds, the order of keys, characters of any kind.

Django's own serializers cut times to milliseconds and write encrypted fields in the clear, so each kind of field is
written here as the database has it, and a kind that is not known is refused.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from cryptography.fernet import Fernet
from django.db import connection, models
from django.db.models import F, QuerySet
from django.db.models.functions import Cast
from encrypted_fields.fields import EncryptedFieldMixin

from m3web.moving.refusals import Refused
from m3web.moving.secrets import decrypted
from runs.models.exact import ExactJSON, ExactText

_STORED = "stored_{}"


def readable(rows: QuerySet[Any]) -> QuerySet[Any]:
    """The rows with their encrypted fields as they are stored beside them, and not read."""
    hidden = [
        field.attname for field in rows.model._meta.concrete_fields if isinstance(field, EncryptedFieldMixin)
    ]
    stored = {_STORED.format(name): Cast(F(name), models.TextField()) for name in hidden}
    return rows.annotate(**stored).defer(*hidden) if hidden else rows


def written(row: models.Model, fernet: Fernet) -> dict[str, Any]:
    """A row of `readable` by columns. Raises Refused for a secret that cannot be read here."""
    return {field.attname: _written(row, field, fernet) for field in row._meta.concrete_fields}


def _written(row: models.Model, field: Any, fernet: Fernet) -> Any:
    if isinstance(field, EncryptedFieldMixin):
        stored = getattr(row, _STORED.format(field.attname))
        decrypted(field, stored, fernet)
        return stored
    value = getattr(row, field.attname)
    if value is None:
        return None
    match field:
        case ExactJSON():
            return field.get_db_prep_value(value, connection)
        case ExactText():
            return field.get_prep_value(value)
    match value:
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat()
        case uuid.UUID():
            return str(value)
        case str() | int() | bool():
            return value
    raise TypeError(f"{field} holds a {type(value).__name__}, of which nobody has said how it moves.")


def read(model: type[models.Model], columns: dict[str, Any], fernet: Fernet) -> models.Model:
    """The row, not stored yet. Raises Refused for other columns than this version has, or a secret that is none."""
    fields = model._meta.concrete_fields
    if columns.keys() != {field.attname for field in fields}:
        raise Refused("its columns are not those of this version")
    return model(**{field.attname: _read(field, columns[field.attname], fernet) for field in fields})


def _read(field: Any, value: Any, fernet: Fernet) -> Any:
    if value is None:
        return None
    match field:
        case EncryptedFieldMixin():
            return decrypted(field, value, fernet)
        case ExactJSON() | ExactText():
            return field.from_db_value(value, None, connection)
        case models.DateTimeField():
            return dt.datetime.fromisoformat(value)
        case models.UUIDField():
            return uuid.UUID(value)
    return value
