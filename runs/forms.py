"""The forms of the run, agent and server pages. They read what was typed; the services judge it."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms
from django.utils.html import format_html

from runs import binding
from runs.access import Actor, visible
from runs.agents import AgentValues
from runs.control import Submission
from runs.models import Agent, Server, Transport
from runs.risk import Risk
from runs.run_states import HumanInput, PermissionMode
from runs.servers import ServerValues
from runs.submission_checks import MAX_MESSAGE
from runs.tool_standing import Words

MODES = [
    (mode.value, format_html("{}<small>{}</small>", mode.value.capitalize(), mode.describe))
    for mode in PermissionMode
]
EXAMPLE = """{
  "steps": [
    {"say": "Looking into it."},
    {"ask": {"questions": [{
      "question": "Which segment first?",
      "header": "Segment",
      "multiSelect": false,
      "options": [{"label": "enterprise"}, {"label": "mid-market"}]
    }]}, "as": "choice"},
    {"plan": ["1. Draft the text\\n2. Show it"], "as": "plan"},
    {"finish": "Done for {{ choice.answers.\\"Which segment first?\\" }}."}
  ]
}
"""
"""A playbook to start from: it asks, proposes a plan, and needs no server."""


class StartForm(forms.Form):
    """A run to be started by hand. Human input is managed: whoever starts a run on a page can be asked."""

    agent = forms.ModelChoiceField(queryset=Agent.objects.none(), empty_label=None)
    message = forms.CharField(
        max_length=MAX_MESSAGE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What the agent should do.",
    )
    mode = forms.ChoiceField(
        choices=[
            ("", format_html("{}<small>{}</small>", "The agent's default", "As set on the agent's page.")),
            *MODES,
        ],
        required=False,
        widget=forms.RadioSelect,
        label="Permission mode",
    )
    user_id = forms.CharField(
        max_length=200,
        required=False,
        label="End user",
        help_text="The customer for whom the agent acts, by the id that your application uses.",
    )

    def __init__(self, actor: Actor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = visible(actor, Agent.objects.filter(enabled=True))
        self.fields["agent"].queryset = agents  # type: ignore[attr-defined]  # a ModelChoiceField
        self.actor = actor

    def submission(self) -> Submission:
        """What the cleaned form asks for."""
        return Submission(
            message=self.cleaned_data["message"],
            mode=self.cleaned_data["mode"] or None,
            human_input=HumanInput.MANAGED,
            user_id=self.cleaned_data["user_id"].strip() or None,
            started_by=self.actor.user,
        )


class ReplyForm(forms.Form):
    message = forms.CharField(max_length=MAX_MESSAGE, widget=forms.Textarea(attrs={"rows": 3}), label="Reply")


class AgentForm(forms.Form):
    name = forms.CharField(max_length=120)
    instructions = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="For people, and for harnesses with a language model. A playbook does not read them.",
    )
    servers = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, help_text="Only these servers can be called."
    )
    definition = forms.CharField(
        label="Playbook",
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 22,
                "class": "json-input",
                "spellcheck": "false",
                "autocapitalize": "off",
                "wrap": "off",
            }
        ),
        help_text="JSON: cases, steps and replies.",
    )
    default_mode = forms.ChoiceField(choices=MODES, widget=forms.RadioSelect, label="Default permission mode")
    elicitation_timeout = forms.CharField(
        required=False,
        max_length=32,
        label="Time to answer",
        help_text="How long people have, such as 15m, 2h or 1d. Empty means the account's setting.",
    )
    enabled = forms.BooleanField(required=False, initial=True, label="May be started")

    def __init__(self, actor: Actor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        servers = visible(actor, Server.objects.all()).values_list("pk", "name")
        _choices(self.fields["servers"], [(str(pk), name) for pk, name in servers])

    @staticmethod
    def initial_for(agent: Agent, definition: str) -> dict[str, Any]:
        """What the form shows of a stored agent; `definition` is its JSON text."""
        return {
            "name": agent.name,
            "instructions": agent.instructions,
            "servers": [str(server.pk) for server in agent.servers.all()],
            "definition": definition,
            "default_mode": agent.default_mode,
            "elicitation_timeout": agent.elicitation_timeout or "",
            "enabled": agent.enabled,
        }

    def values(self) -> AgentValues:
        data = self.cleaned_data
        return AgentValues(
            name=data["name"],
            instructions=data["instructions"],
            servers=[int(pk) for pk in data["servers"]],
            definition=data["definition"],
            default_mode=data["default_mode"],
            elicitation_timeout=data["elicitation_timeout"] or None,
            enabled=data["enabled"],
        )


class ServerForm(forms.Form):
    """A server. Stored header and variable values are never shown again; an empty box keeps them."""

    name = forms.CharField(
        max_length=60, help_text="Used in tool names, as in name:tool. Letters, digits, . - _"
    )
    kind = forms.ChoiceField(widget=forms.RadioSelect, label="Where it is")
    entry = forms.ChoiceField(required=False, help_text="Programs that the host allows to be started.")
    variables = forms.CharField(
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "json-input", "spellcheck": "false", "autocomplete": "off"}
        ),
        help_text="One NAME=value per line, for the variables that the entry lists. Never shown again.",
    )
    command = forms.CharField(
        required=False,
        max_length=2000,
        help_text="The program and its arguments, as in a shell. Demo mode only.",
    )
    url = forms.CharField(
        required=False, max_length=2000, label="URL", help_text="Streamable HTTP, such as https://…/mcp"
    )
    headers = forms.CharField(
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "json-input", "spellcheck": "false", "autocomplete": "off"}
        ),
        help_text="One Name: value per line, for example for a token. Stored encrypted, never shown again.",
    )
    forget = forms.BooleanField(required=False, label="Forget the stored secret values")
    trusted = forms.BooleanField(
        required=False,
        label="Trust this server's own word on what its tools do",
        help_text="Its read-only and destructive annotations then count. Without trust every tool is a write.",
    )

    def __init__(self, *args: Any, stored: Server | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        listed = binding.entries()
        self.stored_names = sorted({**stored.headers, **stored.variables}) if stored else []
        kinds = [("entry", "A program of the host's list"), ("url", "A URL")]
        if binding.may_hold_command():
            kinds.insert(1, ("command", "A command (demo mode)"))
        else:
            del self.fields["command"]
        _choices(self.fields["kind"], kinds)
        entries = [(name, _entry(name, variables)) for name, variables in listed.items()]
        _choices(self.fields["entry"], [("", "Choose…"), *entries])
        if not self.stored_names:
            del self.fields["forget"]
        self.initial.setdefault("kind", "entry" if listed else "url")

    @staticmethod
    def initial_for(server: Server) -> dict[str, Any]:
        kind = "url" if server.transport == Transport.HTTP else ("entry" if server.entry else "command")
        return {
            "name": server.name,
            "kind": kind,
            "entry": server.entry,
            "command": shlex.join([server.command, *map(str, server.args)]) if server.command else "",
            "url": server.url,
            "trusted": server.trusted,
        }

    def clean_command(self) -> list[str]:
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError as error:
            raise forms.ValidationError(f"This cannot be read as a command: {error}.") from error

    def clean_variables(self) -> dict[str, str]:
        return _pairs(self.cleaned_data["variables"], "=", "NAME=value")

    def clean_headers(self) -> dict[str, str]:
        return _pairs(self.cleaned_data["headers"], ":", "Name: value")

    def values(self) -> ServerValues:
        data = self.cleaned_data
        kind = data["kind"]
        command = data.get("command") or [""] if kind == "command" else [""]
        forget = data.get("forget", False)
        return ServerValues(
            name=data["name"],
            entry=data["entry"] if kind == "entry" else "",
            command=command[0],
            args=tuple(command[1:]),
            url=data["url"].strip() if kind == "url" else "",
            headers=data["headers"] or ({} if forget else None),
            variables=data["variables"] or ({} if forget else None),
            trusted=data["trusted"],
        )


class ToolWordsForm(forms.Form):
    """What an admin says about one tool; empty is "not said", and only a plain yes permits making a call again."""

    risk = forms.TypedChoiceField(
        choices=[("", "Not said"), *[(risk.value, risk.word) for risk in Risk]],
        coerce=Risk,
        empty_value=None,
        required=False,
    )
    idempotent = forms.NullBooleanField(required=False)
    replay_allowed = forms.NullBooleanField(required=False)

    def words(self) -> Words:
        data = self.cleaned_data
        return Words(
            risk=data["risk"],
            idempotent=data["idempotent"],
            replay_allowed=data["replay_allowed"] is True,
        )


def _choices(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    field.choices = choices  # type: ignore[attr-defined]  # a ChoiceField; Django types its own dict too widely


def _entry(name: str, variables: tuple[str, ...]) -> str:
    return f"{name} (variables: {', '.join(variables)})" if variables else name


def _pairs(text: str, separator: str, shape: str) -> dict[str, str]:
    """Lines of `NAME<separator>value` as a dictionary; the message of a bad line never repeats a secret."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, found, value = line.partition(separator)
        if not line.strip():
            continue
        if not found or not name.strip():
            raise forms.ValidationError(f"Line {number} is not of the form “{shape}”.")
        pairs[name.strip()] = value.strip()
    return pairs
