"""Reading posted texts, field by field, and asking the validator about the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Any, Final

from approvals.form_values.datetimes import joined
from approvals.form_values.json_text import value_of
from approvals.form_values.numbers import integer_of, number_of
from approvals.form_values.refusals import Refused
from approvals.form_values.showing import ZONE, shown
from approvals.schema_form.fields import FieldKind, FormField, Json
from runs.schema_check import FieldError, SchemaProblem, validate

Posted = Mapping[str, Sequence[str]]
"""Every text that was posted under a name; names are without prefix."""

_TRIMMED = frozenset({FieldKind.EMAIL, FieldKind.URI, FieldKind.DATE})
"""Kinds of text that never begin or end with a space, so one that was pasted along is dropped."""


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Nothing was answered; the property is left out."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The outcome: `content` if everything is in order, else None and what is wrong, where.

    `errors` are by `html_name`, `form_errors` concern the answer as a whole.
    """

    content: dict[str, Json] | None
    errors: Mapping[str, tuple[str, ...]] = dataclass_field(default_factory=dict)
    form_errors: tuple[str, ...] = ()


def read(
    schema: Json,
    fields: Sequence[FormField],
    posted: Posted,
    *,
    current: Mapping[str, Json] | None = None,
) -> Reading:
    """Read `posted` as an answer to `fields` and validate it against `schema`. Never raises.

    `current` holds, by `html_name`, the values under edit: a field that comes back as shown keeps its value.
    """
    content: dict[str, Json] = {}
    errors: dict[str, list[str]] = {}
    for field in fields:
        try:
            _put(content, field, _value(field, posted, current or {}))
        except Refused as refused:
            errors[field.html_name] = [refused.message]
    form_errors: list[str] = []
    try:
        wrong = validate(schema, content)
    except SchemaProblem as problem:
        return Reading(content=None, form_errors=(problem.message,))
    _sort_in(wrong, fields, errors, form_errors)
    if errors or form_errors:
        return Reading(
            content=None,
            errors={name: tuple(messages) for name, messages in errors.items()},
            form_errors=tuple(form_errors),
        )
    return Reading(content=content)


def _put(content: dict[str, Json], field: FormField, value: Json) -> None:
    """Add one field's value; a field without a name adds the entries of its object."""
    if value is ABSENT:
        return
    if field.name is not None:
        content[field.name] = value
        return
    if not isinstance(value, dict):
        raise Refused('Enter a JSON object, such as {"name": "value"}.')
    if twice := content.keys() & value.keys():
        raise Refused(f'"{min(twice)[:80]}" has a field of its own in this form; change it there.')
    content.update(value)


def _sort_in(
    wrong: Sequence[FieldError],
    fields: Sequence[FormField],
    errors: dict[str, list[str]],
    form_errors: list[str],
) -> None:
    """Give each schema error to the field it belongs to.

    A field whose text was not even read is left with that one error, and errors about the whole wait until
    every field is read, because they may only follow from what is missing.
    """
    unread = frozenset(errors)
    names = {field.name: field for field in fields if field.name is not None}
    catch_all = next((field for field in fields if field.name is None), None)
    for error in wrong:
        owner = names.get(str(error.path[0]), catch_all) if error.path else None
        if owner is None and not unread:
            form_errors.append(_located(error, 0))
        elif owner is not None and owner.html_name not in unread:
            message = _located(error, 0 if owner.name is None else 1)
            if message not in errors.setdefault(owner.html_name, []):
                errors[owner.html_name].append(message)


def _located(error: FieldError, skip: int) -> str:
    """The message, after the path below the field that shows it."""
    below = "/".join(str(part) for part in error.path[skip:])
    return f"At {below[:200]}: {error.message}" if below else error.message


def _value(field: FormField, posted: Posted, current: Mapping[str, Json]) -> Json:
    if field.html_name in current and _as_shown(field, posted, current[field.html_name]):
        return current[field.html_name]
    if field.kind is FieldKind.MULTICHOICE:
        return _many(field, posted.get(field.html_name, ()))
    text = _text(field, posted)
    if text == "":
        return None if field.required and field.nullable else ABSENT
    return _READERS[field.kind](field, text, posted)


def _as_shown(field: FormField, posted: Posted, value: Json) -> bool:
    """Whether the field came back as `value` is shown; times are compared whole, as browsers shorten them."""
    before = shown(field, value)
    if field.kind is FieldKind.MULTICHOICE:
        return sorted(posted.get(field.html_name, ())) == sorted(before[field.html_name])
    if field.kind is FieldKind.DATETIME and value is not None:
        return _same_moment(field, posted, before)
    return _text(field, posted) == _text(field, before)


def _same_moment(field: FormField, posted: Posted, before: Posted) -> bool:
    if _text(field, posted) == "":
        return False
    try:
        return _moment(field, _text(field, posted), posted) == _moment(field, _text(field, before), before)
    except Refused:
        return False


def _text(field: FormField, posted: Posted) -> str:
    """The one text of a field, as typed; a text area's line ends come back as the value had them."""
    text = _last(posted, field.html_name)
    if field.kind in (FieldKind.TEXT, FieldKind.JSON):
        text = text.replace("\r\n", "\n")
    if field.kind in (FieldKind.STRING, FieldKind.TEXT):
        return text
    return text if text.strip() else ""


def _last(posted: Posted, name: str) -> str:
    texts = posted.get(name, ())
    return texts[-1] if texts else ""


def _moment(field: FormField, text: str, posted: Posted) -> str:
    return joined(text, _last(posted, field.html_name + ZONE))


def _boolean(_field: FormField, text: str, _posted: Posted) -> bool:
    if text not in ("true", "false"):
        raise Refused("Choose Yes or No.")
    return text == "true"


def _one(field: FormField, text: str, _posted: Posted) -> Json:
    return field.options[_index(field, text)].value


def _many(field: FormField, texts: Sequence[str]) -> Json:
    """The chosen values in the order in which they are offered."""
    chosen = sorted({_index(field, text) for text in texts if text != ""})
    if not chosen and not field.required:
        return ABSENT
    return [field.options[index].value for index in chosen]


def _index(field: FormField, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < len(field.options):
        return int(text)
    raise Refused("Choose from the values that are offered.")


def _plain(field: FormField, text: str, _posted: Posted) -> str:
    return text.strip() if field.kind in _TRIMMED else text


_READERS: Final[Mapping[FieldKind, Any]] = {
    FieldKind.STRING: _plain,
    FieldKind.TEXT: _plain,
    FieldKind.EMAIL: _plain,
    FieldKind.URI: _plain,
    FieldKind.DATE: _plain,
    FieldKind.DATETIME: _moment,
    FieldKind.INTEGER: lambda _field, text, _posted: integer_of(text),
    FieldKind.NUMBER: lambda _field, text, _posted: number_of(text),
    FieldKind.BOOLEAN: _boolean,
    FieldKind.CHOICE: _one,
    FieldKind.JSON: lambda _field, text, _posted: value_of(text),
}
