"""What can be run: agents and the tasks saved for them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.models.account import Account, EndUser
from runs.models.base import one_of, optional_word_field, time_limit, word_field
from runs.models.exact import ExactJSON, ExactText
from runs.models.server import Server
from runs.run_states import PermissionMode


class Agent(models.Model):
    """A harness with its definition, the servers it may use and its default permission mode."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=120)
    instructions = ExactText(blank=True)
    harness = models.CharField(max_length=32, default="playbook")
    definition = ExactJSON(default=dict, blank=True)
    """What the harness reads; for `playbook` the JSON of design section 3."""
    servers = models.ManyToManyField(Server, blank=True, related_name="agents")
    default_mode = word_field(PermissionMode, default=PermissionMode.AUTONOMOUS)
    elicitation_timeout = models.CharField(max_length=32, null=True, blank=True, validators=[time_limit])
    """Overrides the account's; format of A17."""
    enabled = models.BooleanField(default=True)
    end_user = models.ForeignKey(
        EndUser, null=True, blank=True, on_delete=models.PROTECT, related_name="agents"
    )
    """The only end user for whom it may run; null means anybody."""
    metadata = ExactJSON(default=dict, blank=True)
    """Of the embedding application; nothing here reads it."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "name"], name="agent_name_once"),
            one_of("agent", "default_mode", PermissionMode),
        ]
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """Saved instructions for an agent, with a mode and a selection of tools of their own."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tasks")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tasks")
    name = models.CharField(max_length=120, blank=True)
    instructions = ExactText()
    default_mode = optional_word_field(PermissionMode)
    tools = ExactJSON(null=True, blank=True)
    """Selection of its runs, as `Run.tools`."""
    end_user = models.ForeignKey(
        EndUser, null=True, blank=True, on_delete=models.PROTECT, related_name="tasks"
    )
    """The only end user for whom it may run; null means anybody."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("task", "default_mode", PermissionMode, null=True)
        ]

    def __str__(self) -> str:
        return self.name or self.instructions[:60]
