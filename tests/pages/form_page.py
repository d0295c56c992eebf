"""A rendered form as a browser sees it: its controls, and what posting it sends."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.http import QueryDict

from approvals.forms import ElicitationForm
from approvals.schema_form import FieldKind


class Page(HTMLParser):
    """The controls of a rendered form, each as the set of its attributes, and all ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.controls: list[dict[str, str]] = []
        self.options: dict[str, list[str]] = {}
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.fors: list[str] = []
        self.described: list[str] = []
        self.text: list[str] = []
        self._select: str | None = None
        self._area: dict[str, str] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if "for" in found:
            self.fors.append(found["for"])
        self.described.extend(found.get("aria-describedby", "").split())
        if tag == "input":
            self.controls.append(found)
        elif tag == "textarea":
            self._area = {**found, "type": "textarea", "value": ""}
            self.controls.append(self._area)
        elif tag == "select":
            self._select = found["name"]
            self.controls.append({**found, "type": "select", "value": ""})
        elif tag == "option" and self._select is not None:
            if "selected" in found or not self.options.get(self._select):
                self.controls[-1]["value"] = found["value"]
            self.options.setdefault(self._select, []).append(found["value"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            # A browser drops the line break after the tag and sends CRLF for every other one.
            text = data.removeprefix("\n")
            self._area["value"] += text.replace("\n", "\r\n")
        else:
            self.text.append(data)

    def posted(self) -> dict[str, list[str]]:
        """What a browser sends for the page as it stands."""
        data: dict[str, list[str]] = {}
        for control in self.controls:
            if control["type"] in ("radio", "checkbox") and "checked" not in control:
                continue
            data.setdefault(control["name"], []).append(control["value"])
        return data


def query(data: dict[str, list[str]]) -> QueryDict:
    found = QueryDict(mutable=True)
    for name, values in data.items():
        found.setlist(name, values)
    return found


def fill(form: ElicitationForm, typed: dict[str, Any]) -> dict[str, list[str]]:
    """Post the rendered form with `typed` (texts by property; a date-time as [local, zone]) put in."""
    data = Page(str(form)).posted()
    for row in form.rows:
        answer = typed.get(row.field.name or "")
        if answer is None:
            continue
        if row.field.kind is FieldKind.DATETIME:
            data[row.name], data[row.zone_name] = [answer[0]], [answer[1]]
        else:
            data[row.name] = [answer] if isinstance(answer, str) else list(answer)
    return data
