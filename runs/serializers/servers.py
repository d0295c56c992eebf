"""What the API takes and shows of servers and their tools. Secret values go in and never come out (R14)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from runs import tool_words
from runs.api.base import Limited, Paging
from runs.api.fields import Flag, QueryFlag, Text, Word
from runs.models import Server, Tool
from runs.models.server import Transport
from runs.risk import Risk
from runs.server_changes import KEPT
from runs.servers import MAX_HEADERS, MAX_URL, MAX_VALUE
from runs.tool_standing import Whose


class ServerQuery(Paging):
    """The query of the list of servers."""

    name = Text(required=False, allow_blank=False)


class ToolQuery(Paging):
    """The query of the list of a server's tools."""

    include_gone = QueryFlag()


class EntryQuery(Limited):
    """The query of the host's list of stdio servers; its entries have names for ids."""

    starting_after = Text(required=False, allow_blank=False)


class EntryShape(serializers.Serializer[Any]):
    """A program that the host lets an account start, and the variables that may be filled in for it."""

    name = serializers.CharField()
    variables = serializers.ListField(child=serializers.CharField())


class ServerShape(serializers.Serializer[Server]):
    """A server as it was registered, and how the last look at it went."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    transport = Word(Transport)
    entry = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()
    address = serializers.CharField()
    headers = serializers.SerializerMethodField()
    variables = serializers.SerializerMethodField()
    trusted = serializers.BooleanField()
    title = serializers.CharField(source="server_title")
    protocol_version = serializers.CharField()
    instructions = serializers.CharField()
    problems = serializers.ListField(child=serializers.CharField())
    last_error = serializers.SerializerMethodField()
    listed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def get_entry(self, server: Server) -> str | None:
        return server.entry or None

    def get_url(self, server: Server) -> str | None:
        return server.url or None

    def get_headers(self, server: Server) -> dict[str, str]:
        return dict.fromkeys(sorted(server.headers), KEPT)

    def get_variables(self, server: Server) -> dict[str, str]:
        return dict.fromkeys(sorted(server.variables), KEPT)

    def get_last_error(self, server: Server) -> str | None:
        return server.last_error or None


class StandingShape(serializers.Serializer[Any]):
    """What counts for a tool and whose word that is; `repeated`: a call whose result was lost is made again."""

    risk = Word(Risk)
    risk_by = Word(Whose)
    idempotent = serializers.BooleanField()
    idempotent_by = Word(Whose)
    repeated = serializers.BooleanField()
    repeated_by = Word(Whose)


class WordShape(serializers.Serializer[Any]):
    """What an admin has said of a tool; null where nothing was said."""

    risk = Word(Risk, allow_null=True)
    idempotent = serializers.BooleanField(allow_null=True)
    replay_allowed = serializers.BooleanField()
    said_by = serializers.CharField(allow_null=True)
    said_at = serializers.DateTimeField(allow_null=True)


class ToolLine(serializers.Serializer[Tool]):
    """A tool without its schemas."""

    # Its rows come from `with_words`.
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    full_name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    present = serializers.BooleanField()
    changed_at = serializers.DateTimeField(allow_null=True)
    standing = StandingShape()
    word = WordShape()


class ToolShape(ToolLine):
    """A tool in full."""

    annotations = serializers.DictField()
    input_schema = serializers.DictField()
    output_schema = serializers.DictField(allow_null=True)
    digest = serializers.CharField()


class LookShape(ServerShape):
    """What a look at a server found: `ok`, or in `last_error` why not; `tools` are then those of the last good one."""

    ok = serializers.SerializerMethodField()
    tools = serializers.SerializerMethodField()

    def get_ok(self, server: Server) -> bool:
        return not server.last_error

    def get_tools(self, server: Server) -> list[dict[str, Any]]:
        rows = with_words(server, server.tools.filter(present=True).defer("input_schema", "output_schema"))
        return [dict(ToolLine(tool).data) for tool in rows]


class _Secrets(serializers.DictField):
    """{name: value}; null means none."""

    def __init__(self) -> None:
        super().__init__(child=Text(max_length=MAX_VALUE), required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        values = dict(super().to_internal_value(data))
        if len(values) > MAX_HEADERS:
            raise serializers.ValidationError(f"Must have at most {MAX_HEADERS} members.")
        return values


class ServerChange(serializers.Serializer[Any]):
    """The body that changes a server; what is left out stays.

    `headers` and `variables` are replaced as a whole. A value of eight asterisks, as they are shown, keeps the stored
    one, unless the server moves to another address: secrets do not move along.
    """

    name = Text(required=False)
    entry = Text(required=False, allow_blank=False, max_length=60)
    url = Text(required=False, allow_blank=False, max_length=MAX_URL)
    headers = _Secrets()
    variables = _Secrets()
    trusted = Flag(required=False)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if "entry" in values and "url" in values:
            raise serializers.ValidationError({"url": "Give either a URL or an entry, not both."})
        return values


class NewServer(ServerChange):
    """The body that registers a server: an `entry` of the host's list, or the `url` of a streamable HTTP server."""

    name = Text()

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        values = dict(super().validate(values))
        if "entry" not in values and "url" not in values:
            raise serializers.ValidationError({"url": "Give a URL, or an entry of the host's list."})
        return values


class WordChange(serializers.Serializer[Any]):
    """The body that says something of a tool; what is left out stays said, null takes it back."""

    risk = Word(Risk, required=False, allow_null=True)
    idempotent = Flag(required=False, allow_null=True)
    replay_allowed = Flag(required=False)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "risk": Risk(values["risk"])} if values.get("risk") else values


def with_words(server: Server, tools: Iterable[Tool]) -> list[Tool]:
    """`tools` of one server, each with what ToolLine reads beside its columns."""
    newest = tool_words.latest_words(server)
    rows = list(tools)
    for tool in rows:
        tool.server = server
        said, by = tool_words.words_on(tool), newest.get(tool.pk)
        tool.standing = tool_words.standing_of(tool, server)  # type: ignore[attr-defined]  # for the shape alone
        tool.word = {  # type: ignore[attr-defined]  # so is this
            "risk": said.risk,
            "idempotent": said.idempotent,
            "replay_allowed": said.replay_allowed,
            "said_by": by.said_by_name if by else None,
            "said_at": by.said_at if by else None,
        }
    return rows
