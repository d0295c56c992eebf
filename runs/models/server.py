"""MCP servers as an account knows them, and the tools they last listed."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from encrypted_fields.fields import EncryptedJSONField

from runs.models.account import Account
from runs.models.base import one_of, optional_word_field, word_field
from runs.models.exact import ExactJSON, ExactText
from runs.risk import Risk

server_name = RegexValidator(
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$", "Use letters, digits, dot, dash or underscore; no colon."
)


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"


class Server(models.Model):
    """One MCP server.

    A stdio server names an entry of the host-owned allow-list; `command`/`args` are stored here only when demo
    mode on loopback added it from the page. `negotiated` is the saved handshake, so that later sessions
    start without a probe; `identity` is the digest of command and args, or of the URL, and pins policies.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="servers")
    name = models.CharField(max_length=60, validators=[server_name])
    transport = word_field(Transport)
    entry = models.CharField(max_length=60, blank=True)
    command = models.CharField(max_length=500, blank=True)
    args = ExactJSON(default=list, blank=True)
    url = models.URLField(max_length=2000, blank=True)
    headers = EncryptedJSONField(default=dict, blank=True)
    variables = EncryptedJSONField(default=dict, blank=True)
    """Values for the variables that the allow-list entry lets an admin fill in."""
    trusted = models.BooleanField(default=False)
    """An admin vouches for this server: its tool annotations count."""
    negotiated = ExactJSON(null=True, blank=True)
    identity = models.CharField(max_length=80, blank=True)
    server_title = models.CharField(max_length=200, blank=True)
    protocol_version = models.CharField(max_length=20, blank=True)
    instructions = ExactText(blank=True)
    listed_at = models.DateTimeField(null=True, blank=True)
    last_error = ExactText(blank=True)
    problems = ExactJSON(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "name"], name="server_name_once"),
            models.CheckConstraint(condition=~models.Q(name__contains=":"), name="server_name_without_colon"),
            models.CheckConstraint(condition=~models.Q(name="local"), name="server_name_not_local"),
            one_of("server", "transport", Transport),
            models.CheckConstraint(
                condition=models.Q(transport="http", command="", entry="") & ~models.Q(url="")
                | models.Q(transport="stdio", url="", command="") & ~models.Q(entry="")
                | models.Q(transport="stdio", url="", entry="") & ~models.Q(command=""),
                name="server_has_one_address",
            ),
        ]
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        """Where it is, as shown on cards (R14)."""
        if self.transport == Transport.HTTP:
            return self.url
        return f"stdio entry {self.entry}" if self.entry else " ".join([self.command, *map(str, self.args)])


class Tool(models.Model):
    """A tool as its server last listed it. `present` is False once the server stops listing it: the row stays,
    because an admin's word about its risk must survive a server that hides and shows it again."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="tools")
    name = models.CharField(max_length=200)
    title = models.CharField(max_length=200, blank=True)
    description = ExactText(blank=True)
    input_schema = ExactJSON(default=dict)
    output_schema = ExactJSON(null=True, blank=True)
    annotations = ExactJSON(default=dict, blank=True)
    digest = models.CharField(max_length=80)
    risk = optional_word_field(Risk)
    """The admin's word; null means: judge by annotations if the server is trusted, else write."""
    replay_allowed = models.BooleanField(default=False)
    """An admin permits making an interrupted call again (A23)."""
    idempotent = models.BooleanField(null=True, blank=True)
    position = models.PositiveIntegerField(default=0)
    present = models.BooleanField(default=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["server", "name"], name="tool_name_once"),
            one_of("tool", "risk", Risk, null=True),
        ]
        ordering: ClassVar[list[str]] = ["position", "name"]

    def __str__(self) -> str:
        return self.full_name

    @property
    def full_name(self) -> str:
        return f"{self.server.name}:{self.name}"
