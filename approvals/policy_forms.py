"""The forms of the policy pages. They read what was typed; the services judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms

from approvals.exchange_entries import MAX_RULES
from approvals.explain import Question
from approvals.models import Policy
from approvals.rule_checks import MAX_NOTE, MAX_REASON
from approvals.rule_form import MAX_TARGET, TARGET_BOX, judge_target
from approvals.rules import MAX_DAYS
from runs.end_users import MAX_USER_ID
from runs.forms import MODES
from runs.run_states import PermissionMode
from runs.strict_json import StrictJsonError, loads

_JSON_BOX: Final = {"class": "json-input", "spellcheck": "false", "autocapitalize": "off"}


class EndForm(forms.Form):
    """The end and the note of a rule that is there."""

    KEEP, NEVER, DAYS = "keep", "never", "days"

    end = forms.ChoiceField(widget=forms.RadioSelect, label="When it ends")
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        label="Days from today",
        help_text="For a new end only. Whole days, and on to midnight UTC.",
    )
    note = forms.CharField(max_length=MAX_NOTE, required=False)

    def __init__(self, data: Mapping[str, Any] | None, policy: Policy) -> None:
        super().__init__(data, initial={"end": self.KEEP, "note": policy.note})
        ends = policy.expires_at
        choices = [
            (self.KEEP, "As it is now"),
            (self.NEVER, "When it is revoked"),
            (self.DAYS, "After some days"),
        ]
        self.fields["end"].choices = choices if ends else [choices[0], choices[2]]  # type: ignore[attr-defined]  # a ChoiceField

    def clean(self) -> None:
        data = self.cleaned_data
        if data.get("end") == self.DAYS and data.get("days") is None and "days" not in self.errors:
            self.add_error("days", "Say after how many days it ends.")


class SuspendForm(forms.Form):
    reason = forms.CharField(
        max_length=MAX_REASON, help_text="It stands on the card of every call that asks because of it."
    )


class ExplainForm(forms.Form):
    """A call that nobody makes."""

    target = forms.CharField(
        max_length=MAX_TARGET,
        widget=forms.TextInput(attrs=TARGET_BOX),
        label="Tool",
        help_text="As server:tool. It need not exist yet.",
    )
    arguments = forms.CharField(
        required=False,
        strip=False,
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 5, **_JSON_BOX}),
        help_text='A JSON object, like {"to": "ann@example.com"}. Empty means no arguments.',
    )
    user_id = forms.CharField(
        max_length=MAX_USER_ID, required=False, label="End user", help_text="Empty for a run without one."
    )
    mode = forms.ChoiceField(choices=MODES, widget=forms.RadioSelect, label="Permission mode of the run")
    plan_approved = forms.BooleanField(
        required=False, label="A plan has been approved", help_text="In plan mode only."
    )

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"]
        judge_target(target)
        if ":" not in target:
            raise forms.ValidationError("Only a call can be explained. Write its tool as server:tool.")
        return target

    def clean_arguments(self) -> dict[str, Any]:
        text = self.cleaned_data["arguments"]
        if not text.strip():
            return {}
        arguments = _read_json(text)
        if not isinstance(arguments, dict):
            raise forms.ValidationError("Arguments are a JSON object, in braces.")
        return arguments

    def question(self) -> Question:
        data = self.cleaned_data
        return Question(
            target=data["target"],
            arguments=data["arguments"],
            user_id=data["user_id"] or None,
            mode=PermissionMode(data["mode"]).value,
            plan_approved=data["plan_approved"],
        )


class ImportForm(forms.Form):
    """Rules as JSON, pasted or in a file."""

    file = forms.FileField(
        required=False, label="File", widget=forms.FileInput(attrs={"accept": ".json,application/json"})
    )
    text = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, **_JSON_BOX}),
        label="Or paste it here",
        help_text=f"What was exported here or elsewhere, at most {MAX_RULES:,} rules.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.source, self.content = "", None

    def clean(self) -> None:
        """Reads the JSON: `source` is its text, `content` its value."""
        if self.errors:
            return
        file, self.source = self.cleaned_data["file"], self.cleaned_data["text"]
        if bool(file) is bool(self.source.strip()):
            self.add_error("file", "Give one: a file, or text in the box below.")
            return
        field = "file" if file else "text"
        try:
            if file:
                self.source = file.read().decode("utf-8-sig")
            self.content = _read_json(self.source)
        except UnicodeDecodeError:
            self.add_error(field, "This file is no text in UTF-8.")
        except forms.ValidationError as error:
            self.add_error(field, error)


def _read_json(text: str) -> Any:
    try:
        return loads(text)
    except StrictJsonError as error:
        raise forms.ValidationError(f"This is no JSON. {error}") from error
