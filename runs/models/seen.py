"""What was seen of servers and said of their tools, kept after it has changed: the texts behind digests, and whose word
counted when."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from runs.models.account import Account
from runs.models.base import one_of, optional_word_field
from runs.models.exact import ExactJSON, ExactText
from runs.models.server import Tool
from runs.risk import Risk


class SeenDefinition(models.Model):
    """The text behind a definition's digest, as a turn froze it or a rule pinned it (R28).

    A row never changes. The digest covers name, description and both schemas; title and annotations are those of the
    first listing that had it.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="seen_definitions")
    digest = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    title = models.CharField(max_length=200, blank=True)
    description = ExactText(blank=True)
    input_schema = ExactJSON(default=dict)
    output_schema = ExactJSON(null=True, blank=True)
    annotations = ExactJSON(default=dict, blank=True)
    seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "digest"], name="definition_seen_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "name"], name="definition_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.digest[:15]}"


class SeenAddress(models.Model):
    """The command or URL behind a server's identity, without its secrets (R25). A row never changes."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="seen_addresses")
    identity = models.CharField(max_length=80)
    address = ExactText()
    seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "seen addresses"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "identity"], name="address_seen_once"),
        ]

    def __str__(self) -> str:
        return self.identity[:15]


class ToolWord(models.Model):
    """What an admin said about a tool, when. The newest row is what counts; the older ones are the history."""

    tool = models.ForeignKey(Tool, on_delete=models.CASCADE, related_name="words")
    risk = optional_word_field(Risk)
    idempotent = models.BooleanField(null=True, blank=True)
    replay_allowed = models.BooleanField(default=False)
    said_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="tool_words"
    )
    said_by_name = models.CharField(max_length=150)
    """Kept as words, so that the history outlives the user."""
    said_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [one_of("word", "risk", Risk, null=True)]
        ordering: ClassVar[list[str]] = ["-pk"]

    def __str__(self) -> str:
        return f"{self.said_by_name} on {self.tool}"
