"""The Django form that asks what a JSON Schema describes (R33-R40, R46).

Server-rendered, works without JavaScript. The rules are in `schema_form` (what is asked), `form_values` (what
was answered) and `runs.schema_check` (whether it is right); this class gives them a prefix, Django's life cycle
and templates. `{{ form }}` draws the fields; the buttons belong to the page around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms.renderers import TemplatesSetting
from django.http import QueryDict
from django.utils import timezone

from approvals.form_rows import Row, row_of
from approvals.form_values import Posted, Raw, Reading, read, shown, untouched
from approvals.form_values.datetimes import zone_names
from approvals.schema_form import FieldKind, FormField, editing_fields, form_fields
from approvals.schema_form.fields import Json
from runs.schema_check import SchemaProblem, check_schema
from runs.visible import visible

Data = Mapping[str, Any] | QueryDict
"""A request's POST, or a plain mapping of posted names to a text or a list of texts."""


class ElicitationForm(forms.Form):
    """A form for one keyed request.

    `prefix` keeps the requests of a round apart and is chosen by us (`r0`, `r1` ...), never the request's key.
    `initial` restores a draft: the same names as in `data`, unvalidated (R22). `arguments` turns the form into an
    editor of these values (see `arguments_form`). If the schema cannot be used, `problem` says why, there are no
    fields, and the form is never valid.
    """

    template_name = "approvals/form/form.html"
    default_renderer = TemplatesSetting

    def __init__(
        self,
        schema: Json,
        *,
        data: Data | None = None,
        initial: Data | None = None,
        prefix: str,
        arguments: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(data=data, prefix=prefix, use_required_attribute=False)
        self.schema = schema
        self.problem: str | None = None
        self.asked: tuple[FormField, ...] = ()
        self._current: dict[str, Json] = {}
        self._draft = _without_prefix(initial, prefix) if initial is not None else None
        self._reading: Reading | None = None
        try:
            check_schema(schema)
        except SchemaProblem as problem:
            self.problem = problem.message
        else:
            self._describe(arguments)

    def _describe(self, arguments: Mapping[str, Json] | None) -> None:
        if arguments is None:
            self.asked = form_fields(self.schema)
        else:
            self.asked, self._current = editing_fields(self.schema, arguments)
        for field in self.asked:
            self.fields[field.html_name] = forms.Field(
                required=False, label=visible(field.label), widget=_RawTexts()
            )

    def clean(self) -> dict[str, Any]:
        """Read and validate all fields at once, and hand each error to its field."""
        if self.problem is not None:
            raise forms.ValidationError(self.problem)
        posted = _without_prefix(self.data, str(self.prefix))
        self._reading = read(self.schema, self.asked, posted, current=self._current)
        for html_name, messages in self._reading.errors.items():
            self.add_error(html_name, [forms.ValidationError(message) for message in messages])
        for message in self._reading.form_errors:
            self.add_error(None, message)
        return self.cleaned_data

    @property
    def content(self) -> dict[str, Json]:
        """The content to send. Raises ValueError unless the form is valid."""
        if not self.is_valid() or self._reading is None or self._reading.content is None:
            raise ValueError("An invalid form has no content.")
        return self._reading.content

    @property
    def rows(self) -> list[Row]:
        """The fields as the templates draw them, holding what was typed, else the draft, else the defaults."""
        raw = self._raw()
        zone = timezone.get_current_timezone_name()
        prefix = str(self.prefix)
        return [
            row_of(field, raw, prefix=prefix, zone=zone, errors=self._messages(field.html_name))
            for field in self.asked
        ]

    @property
    def anchor(self) -> str:
        """The id of the element around all fields, for errors about the whole."""
        return f"id_{self.prefix}-form"

    @property
    def error_summary(self) -> list[tuple[str, str]]:
        """(element id, message) for each error in the order of the fields, those about the whole first."""
        whole = [(self.anchor, message) for message in self.whole_errors]
        return whole + [(row.anchor, message) for row in self.rows for message in row.errors]

    @property
    def whole_errors(self) -> list[str]:
        return [visible(message) for message in self._messages(NON_FIELD_ERRORS)]

    @property
    def zones(self) -> Sequence[str]:
        """Time zones to suggest, if any field needs one."""
        return zone_names() if any(field.kind is FieldKind.DATETIME for field in self.asked) else ()

    def get_context(self) -> dict[str, Any]:
        return {"form": self}

    def _raw(self) -> Posted:
        if self.is_bound:
            return _without_prefix(self.data, str(self.prefix))
        if self._draft is not None:
            return self._draft
        raw: Raw = {}
        for field in self.asked:
            name = field.html_name
            raw.update(shown(field, self._current[name]) if name in self._current else untouched(field))
        return raw

    def _messages(self, name: str) -> list[str]:
        return [str(message) for message in self.errors.get(name, ())] if self.is_bound else []


def arguments_form(
    schema: Json, arguments: Mapping[str, Json], data: Data | None = None, prefix: str = "a"
) -> ElicitationForm:
    """The "Edit arguments" form of an approval: `.content` is the whole edited arguments object (R20).

    Values keep their JSON types, untouched ones are the very same values; arguments that the tool's input schema
    does not name are kept in a JSON field of their own.
    """
    return ElicitationForm(schema, data=data, prefix=prefix, arguments=arguments)


class _RawTexts(forms.Widget):
    """Leaves posted texts alone: `form_values` reads them, and templates of our own draw the fields."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return _texts(data.getlist(name) if isinstance(data, QueryDict) else data.get(name, []))


def _without_prefix(data: Any, prefix: str) -> dict[str, tuple[str, ...]]:
    """The posted texts of this form by their names without prefix."""
    items: Iterable[tuple[str, Any]] = data.lists() if isinstance(data, QueryDict) else data.items()
    start = f"{prefix}-"
    return {
        name[len(start) :]: tuple(_texts(value))
        for name, value in items
        if isinstance(name, str) and name.startswith(start)
    }


def _texts(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value is None else [str(value)]
