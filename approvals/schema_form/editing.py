"""The form for changing a call's arguments before it is allowed (R20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from approvals.schema_form.fields import FieldKind, FormField, Json
from approvals.schema_form.fitting import fitted
from approvals.schema_form.reading import form_fields

OTHER = "other"


def editing_fields(
    schema: Json, arguments: Mapping[str, Json]
) -> tuple[tuple[FormField, ...], dict[str, Json]]:
    """The fields, and what each holds now by `html_name` (absent arguments have no entry).

    Defaults of the schema are not filled in: opening the editor changes nothing. Arguments that the schema
    does not name stay, in one JSON field of their own.
    """
    fields: list[FormField] = []
    current: dict[str, Json] = {}
    rest = dict(arguments)
    for described in form_fields(schema):
        field = replace(described, default=None, has_default=False)
        if field.name is None:
            current[field.html_name], rest = rest, {}
        elif field.name in rest:
            current[field.html_name] = rest.pop(field.name)
            field = fitted(field, current[field.html_name])
        fields.append(field)
    if rest:
        current[OTHER] = rest
        fields.append(
            FormField(
                kind=FieldKind.JSON,
                name=None,
                html_name=OTHER,
                label="Other arguments",
                reason="The tool's schema does not describe these.",
            )
        )
    return tuple(fields), current
