"""The form in which an admin writes a rule. It reads what was typed; the services judge it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.html import format_html

from approvals.condition_shape import MAX_TESTS, check_for, read_condition
from approvals.condition_text import MAX_TYPED, path_text, typed_path, typed_value, value_text
from approvals.conditions import ArgumentTest, Condition, TestKind
from approvals.facts import Effect, Scope
from approvals.models import Policy
from approvals.rule_checks import MAX_NOTE
from approvals.rules import MAX_DAYS, MAX_TOOL_NAME, parse_target
from approvals.writing import Written
from runs.end_users import MAX_USER_ID
from runs.errors import ModelValidationError

MAX_TARGET: Final = 60 + 1 + MAX_TOOL_NAME
"""Characters of the longest name of a server, a colon, and the longest name of a tool."""

TARGET_BOX: Final = {"list": "known-targets", "autocomplete": "off", "spellcheck": "false"}
_KINDS: Final = [(TestKind.EQUALS.value, "is"), (TestKind.GLOB.value, "matches the pattern")]

EFFECTS: Final = {
    Effect.ALLOW: "Such calls run without asking. Strict tools ask all the same.",
    Effect.ASK: "Such calls always wait for a person, in every mode.",
    Effect.DENY: "Such calls never run. It beats every allow.",
}


def _option(title: str, text: str) -> str:
    return format_html("{}<small>{}</small>", title, text)


class PolicyForm(forms.Form):
    """A rule as an admin writes it, with `rows` rows for conditions on its arguments."""

    effect = forms.ChoiceField(
        choices=[
            (effect.value, _option(effect.value.capitalize(), text)) for effect, text in EFFECTS.items()
        ],
        widget=forms.RadioSelect,
        label="What happens",
    )
    target = forms.CharField(
        max_length=MAX_TARGET,
        widget=forms.TextInput(attrs=TARGET_BOX),
        label="Server or tool",
        help_text="A whole server, or one tool as server:tool. It need not exist yet.",
    )
    scope = forms.ChoiceField(
        choices=[
            (
                Scope.ACCOUNT.value,
                _option("The account", "An allow: runs without an end user. Ask and deny: every run."),
            ),
            (Scope.USER.value, _option("One end user", "Every run for this end user, and no other run.")),
        ],
        widget=forms.RadioSelect,
        label="In whose runs",
    )
    user_id = forms.CharField(
        max_length=MAX_USER_ID,
        required=False,
        label="End user",
        help_text="By the id that your application uses. Only for a rule about one end user.",
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        label="Days until it ends",
        help_text="Whole days, and on to midnight UTC. Leave it empty for a rule that holds until it is revoked.",
    )
    note = forms.CharField(
        max_length=MAX_NOTE, required=False, help_text="Why there is this rule, for whoever meets it later."
    )

    def __init__(self, *args: Any, rows: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rows = min(max(rows, 1), MAX_TESTS)
        self.condition: Condition = ()
        for number in range(1, self.rows + 1):
            self.fields[f"path_{number}"] = forms.CharField(
                max_length=MAX_TYPED, required=False, label=f"Argument {number}"
            )
            self.fields[f"kind_{number}"] = forms.ChoiceField(
                choices=_KINDS, required=False, label=f"Comparison {number}"
            )
            self.fields[f"value_{number}"] = forms.CharField(
                max_length=MAX_TYPED, required=False, strip=False, label=f"Value {number}"
            )

    @classmethod
    def posted(cls, data: QueryDict) -> PolicyForm:
        """The form as it was sent, to be judged."""
        return cls(data, rows=_rows(data))

    @classmethod
    def again(cls, data: QueryDict, *, more: bool) -> PolicyForm:
        """The form with what was typed, not judged yet; with one row more for a condition, if wanted."""
        return cls(initial=data.dict(), rows=_rows(data) + more)

    @classmethod
    def like(cls, policy: Policy) -> PolicyForm:
        """The form of a rule that says what this one says, except for its end."""
        tests = read_condition(policy.condition)
        initial: dict[str, Any] = {
            "effect": policy.effect,
            "target": policy.target,
            "scope": policy.scope,
            "user_id": policy.end_user.user_id if policy.end_user else "",
            "note": policy.note,
        }
        for number, test in enumerate(tests, start=1):
            initial |= {
                f"path_{number}": path_text(test.path),
                f"kind_{number}": test.kind.value,
                f"value_{number}": value_text(test),
            }
        return cls(initial=initial, rows=len(tests))

    @property
    def condition_rows(self) -> list[tuple[forms.BoundField, forms.BoundField, forms.BoundField]]:
        numbers = range(1, self.rows + 1)
        return [(self[f"path_{n}"], self[f"kind_{n}"], self[f"value_{n}"]) for n in numbers]

    @property
    def may_have_more(self) -> bool:
        return self.rows < MAX_TESTS

    @property
    def has_condition(self) -> bool:
        """Whether anything is typed that the page would otherwise fold away."""
        return any(
            path.value() or value.value() or path.errors or value.errors
            for path, _, value in self.condition_rows
        )

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"]
        judge_target(target)
        return target

    def clean(self) -> None:
        data = self.cleaned_data
        if data.get("scope") == Scope.USER and not data.get("user_id") and "user_id" not in self.errors:
            self.add_error("user_id", "Say which end user the rule is about.")
        if data.get("scope") == Scope.ACCOUNT and data.get("user_id"):
            self.add_error(
                "user_id", "A rule about the account names no end user. Empty this, or choose one end user."
            )
        effect = Effect(data["effect"]) if "effect" in data else None
        tests = [self._test(number, effect) for number in range(1, self.rows + 1)]
        self.condition = tuple(test for test in tests if test is not None)

    def _test(self, number: int, effect: Effect | None) -> ArgumentTest | None:
        """The condition in a row; None for an empty row, and for one with a mistake, which is noted."""
        data, at = self.cleaned_data, "path"
        path, value = data.get(f"path_{number}", ""), data.get(f"value_{number}", "")
        if not path and not value:
            return None
        kind = TestKind(data.get(f"kind_{number}") or TestKind.EQUALS)
        try:
            steps = typed_path(path)
            at = "value"
            wanted = typed_value(kind, value)
            test = ArgumentTest(path=steps, kind=kind, value=wanted)
            at = "path" if steps else "value"
            if effect is not None:
                check_for(effect, (test,))
        except (ModelValidationError, ValueError) as error:
            self.add_error(f"{at}_{number}", str(error))
            return None
        return test

    def written(self) -> Written:
        """What the cleaned form asks for."""
        data = self.cleaned_data
        return Written(
            effect=Effect(data["effect"]),
            target=data["target"],
            user_id=data["user_id"] or None,
            condition=self.condition,
            days=data["days"],
            note=data["note"],
        )


def judge_target(target: str) -> None:
    """Raise ValidationError for what is no server and no server:tool."""
    try:
        parse_target(target)
    except ModelValidationError as error:
        raise forms.ValidationError(error.message) from error


def _rows(data: QueryDict) -> int:
    text = data.get("rows", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 2 else 1
