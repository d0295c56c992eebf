"""One field of a form as its template draws it: ids, names, raw texts, errors, and which template (R46).

Ids and names come from the form's prefix and the field's number; nothing of them comes from the schema (R15).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals.form_values import ZONE
from approvals.schema_form import FieldKind, FormField
from runs.schema_check.formats import is_date
from runs.visible import has_hidden, visible

LONG_CHOICE = 7
"""More options than this are a select instead of radio buttons."""

_LOCAL_INPUT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?", re.ASCII)

_TEMPLATES = {
    FieldKind.TEXT: "area",
    FieldKind.JSON: "area",
    FieldKind.DATETIME: "datetime",
    FieldKind.BOOLEAN: "options",
    FieldKind.MULTICHOICE: "options",
}

_INPUT_MODES = {FieldKind.EMAIL: "email", FieldKind.URI: "url"}
"""All of them stay `type=text`: e-mail and number inputs send something else than was typed, or nothing."""


@dataclass(frozen=True, kw_only=True)
class ShownOption:
    """One radio button, checkbox or entry of a select."""

    id: str
    value: str
    label: str
    checked: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the templates in `approvals/form/` read."""

    field: FormField
    id: str
    name: str
    texts: tuple[str, ...]
    zone: str
    zones_id: str
    errors: tuple[str, ...]
    options: tuple[ShownOption, ...]

    @property
    def template(self) -> str:
        kind = _TEMPLATES.get(self.field.kind, "input")
        if self.field.kind is FieldKind.CHOICE:
            kind = "select" if len(self.field.options) > LONG_CHOICE else "options"
        return f"approvals/form/{kind}.html"

    @property
    def anchor(self) -> str:
        """The element that a link of the error summary leads to."""
        return self.options[0].id if self.template.endswith("options.html") else self.id

    @property
    def text(self) -> str:
        return self.texts[-1] if self.texts else ""

    @property
    def zone_name(self) -> str:
        return f"{self.name}{ZONE}"

    @property
    def zone_id(self) -> str:
        return f"{self.id}{ZONE}"

    @property
    def optional(self) -> bool:
        return not self.field.required and self.field.name is not None

    @property
    def many(self) -> bool:
        return self.field.kind is FieldKind.MULTICHOICE

    @property
    def json(self) -> bool:
        return self.field.kind is FieldKind.JSON

    @property
    def hints(self) -> tuple[str, ...]:
        """Everything below the label, the server's help first."""
        field = self.field
        lines = [field.help] if field.help else []
        lines.extend(field.hints)
        if self.json:
            lines.append(f"{field.reason} Enter JSON.".strip())
        elif self.optional and field.has_default:
            lines.append("If you leave it empty, nothing is sent for it.")
        if self.hidden:
            lines.append("Characters that cannot be seen are written out as ⟨U+…⟩.")
        return tuple(lines)

    @property
    def hidden(self) -> bool:
        field = self.field
        return any(has_hidden(text) for text in (field.label, field.help, *(o.label for o in field.options)))

    @property
    def hint_id(self) -> str:
        return f"{self.id}-hint"

    @property
    def error_id(self) -> str:
        return f"{self.id}-error"

    @property
    def described_by(self) -> str:
        """The ids for `aria-describedby`, or nothing."""
        ids = ((self.hint_id, self.hints), (self.error_id, self.errors))
        return " ".join(id_ for id_, present in ids if present)

    @property
    def input_type(self) -> str:
        """A date input would drop a text that is no date, and with it what was typed."""
        if self.field.kind is FieldKind.DATE:
            return "date" if not self.text or is_date(self.text) else "text"
        if self.field.kind is FieldKind.DATETIME:
            return "datetime-local" if not self.text or _LOCAL_INPUT.fullmatch(self.text) else "text"
        return "text"

    @property
    def input_mode(self) -> str:
        """A keyboard for phones. Their digits-only ones lack a minus, and often the point of a decimal."""
        least = self.field.bounds.get("minimum", self.field.bounds.get("exclusiveMinimum"))
        if self.field.kind is FieldKind.INTEGER and isinstance(least, int | float) and least >= 0:
            return "numeric"
        return _INPUT_MODES.get(self.field.kind, "")

    @property
    def lines(self) -> int:
        """The height of a text area."""
        return min(20, max(4, self.text.count("\n") + 2))


def row_of(
    field: FormField,
    raw: Mapping[str, Sequence[str]],
    *,
    prefix: str,
    zone: str,
    errors: Sequence[str],
) -> Row:
    """The row for `field`, holding the raw texts `raw` (names without prefix); `zone` where none was typed.

    Errors get the label in front, so that the same words serve the field and the summary (R46).
    """
    id_ = f"id_{prefix}-{field.html_name}"
    texts = tuple(raw.get(field.html_name, ()))
    typed_zone = tuple(raw.get(field.html_name + ZONE, ()))
    return Row(
        field=field,
        id=id_,
        name=f"{prefix}-{field.html_name}",
        texts=texts,
        zone=typed_zone[-1] if typed_zone else zone,
        zones_id=f"id_{prefix}-zones",
        errors=tuple(visible(f"{field.label}: {message}") for message in errors),
        options=_shown_options(field, id_, texts),
    )


def _shown_options(field: FormField, id_: str, texts: tuple[str, ...]) -> tuple[ShownOption, ...]:
    """Options post their index (R37); what may stay unanswered offers "No answer" as such (R35)."""
    if field.kind is FieldKind.BOOLEAN:
        pairs = [("true", "Yes"), ("false", "No")]
    else:
        pairs = [(str(index), option.label) for index, option in enumerate(field.options)]
    chosen = set(texts if field.kind is FieldKind.MULTICHOICE else texts[-1:])
    if field.kind in (FieldKind.BOOLEAN, FieldKind.CHOICE) and (not field.required or field.nullable):
        pairs.append(("", "No answer"))
        chosen = chosen or {""}
    return tuple(
        ShownOption(id=f"{id_}-{number}", value=value, label=label, checked=value in chosen)
        for number, (value, label) in enumerate(pairs)
    )
