"""What admins do with MCP servers, and what a look at one stores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from runs import db, definitions, server_notes, tool_words
from runs.access import Actor, get
from runs.binding import binding_of, entries, identity_of, may_hold_command
from runs.egress import check_url
from runs.errors import EgressRefused, M3Error, ModelValidationError, StateConflict
from runs.mcp_client import Inspection, identity, inspect
from runs.models import Account, Role, Run, Server, Transport, Turn
from runs.models.exact import shown
from runs.models.server import server_name
from runs.run_states import TurnStatus
from runs.tool_rows import store_tools

MAX_INSPECTION_SECONDS = 20.0
"""A person waits for it; a call of a run may take longer."""

MAX_URL = 2000
MAX_HEADERS = 20
MAX_VALUE = 8_000
MAX_ARGS = 100

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "accept-encoding"}
)
"""Headers that the transport sets itself; `mcp-*` too."""


@dataclass(frozen=True, kw_only=True)
class ServerValues:
    """A server as a form or an API call describes it.

    Exactly one address: `entry` (of the host's allow-list), `command` with `args` (demo mode on loopback
    only) or `url`. `headers` and `variables` None keep the stored ones: they are never shown again.
    """

    name: str
    entry: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] | None = None
    variables: Mapping[str, str] | None = None
    trusted: bool = False


@transaction.atomic
def register(actor: Actor, values: ServerValues) -> Server:
    """Add a server to the actor's account; nothing is called yet.

    Raises NotAllowed, ModelValidationError (its details name the field) and EgressRefused.
    """
    actor.require(Role.ADMIN)
    server = Server(account=actor.account)
    _fill(server, values)
    server.save(force_insert=True)
    server_notes.note_change(server, actor.user, None)
    return server


@transaction.atomic
def update(actor: Actor, server_id: int, values: ServerValues, *, via: str = "page") -> Server:
    """Change a server. Another address forgets the saved handshake; its tools stay until the next look.

    Raises what `register` raises, NotFound, and StateConflict for a rename while a live run uses it.
    """
    actor.require(Role.ADMIN)
    server = _locked(actor, server_id)
    if values.name != server.name:
        _refuse_while_used(server, "renamed")
    before = server_notes.described(server)
    _change(server, values)
    tool_words.ask_anew(actor, server, via=via)  # the form says too whether its annotations count
    server_notes.note_change(server, actor.user, before)
    return server


@transaction.atomic
def put(account: Account, values: ServerValues) -> Server:
    """Add the server of this name or give it these values, for a program on this machine: the host itself.

    What an admin trusts stays trusted at its address. Raises ModelValidationError and EgressRefused as `register` does.
    """
    named = Server.objects.select_for_update(no_key=True).filter(account=account, name=values.name)
    server = named.first()
    if server is None:  # of two programs that name it for the first time the second finds the first one's
        Account.hold_names(account.pk)
        server = named.first() or Server(account=account, name=values.name)
    if not _is(server, values):
        before = server_notes.described(server) if server.pk else None
        _change(server, replace(values, trusted=values.trusted or server.trusted))
        if (
            values.trusted and not server.trusted
        ):  # the program names what it trusts together with its address
            server.trusted = True
            server.save(update_fields=["trusted"])
        server_notes.note_change(server, None, before)
    return server


@transaction.atomic
def remove(actor: Actor, server_id: int) -> str:
    """Delete a server and its tools, and return its name; the history of runs keeps the name.

    Raises StateConflict while a live run uses it.
    """
    actor.require(Role.ADMIN)
    server = _locked(actor, server_id)
    _refuse_while_used(server, "removed")
    server.delete()
    server_notes.note_removal(server_id, server, actor.user)
    return server.name


@transaction.atomic
def set_trusted(actor: Actor, server_id: int, trusted: bool, *, via: str = "page") -> Server:
    """Say whether the server's own annotations count (design section 7), and decide anew what waits because of it."""
    actor.require(Role.ADMIN)
    server = _locked(actor, server_id)
    before, server.trusted = server_notes.described(server), trusted
    server.save(update_fields=["trusted"])
    tool_words.ask_anew(actor, server, via=via)
    server_notes.note_change(server, actor.user, before)
    return server


async def refresh(server: Server) -> Server:
    """Look at a server now and store what was found, or in one sentence why nothing was.

    Takes at most `look_seconds()`. Never raises because of the server; `last_error` says how it went.
    """
    try:
        # Without the saved handshake: whoever tests a connection wants to know how the server is today.
        found = await inspect(binding_of(server), saved=None, timeout=look_seconds())
    except M3Error as error:
        return await db.write(store_failure, server, error.message)
    return await db.write(store_inspection, server, found)


def look_seconds() -> float:
    """How long a look at a server may take."""
    return min(MAX_INSPECTION_SECONDS, float(settings.M3.call_timeout_seconds))


@transaction.atomic
def store_inspection(server: Server, inspection: Inspection) -> Server:
    """Keep the handshake and the tools of a successful look. Also called by the worker."""
    row = Server.objects.select_for_update(no_key=True).get(pk=server.pk)
    row.identity = identity_of(row)
    definitions.keep_present_address(row)
    row.negotiated = dict(inspection.negotiated)
    row.protocol_version = inspection.protocol_version[:20]
    row.server_title = shown(inspection.server_name, 200)
    row.instructions = inspection.instructions
    row.problems = [*inspection.problems, *store_tools(row, inspection.tools)]
    row.last_error = ""
    row.listed_at = timezone.now()
    row.save(
        update_fields=[
            "identity",
            "negotiated",
            "protocol_version",
            "server_title",
            "instructions",
            "problems",
            "last_error",
            "listed_at",
        ]
    )
    return row


@transaction.atomic
def store_failure(server: Server, message: str) -> Server:
    """Keep why a look failed; the tools of the last good one stay."""
    Server.objects.filter(pk=server.pk).update(last_error=message)
    return Server.objects.get(pk=server.pk)


def uses(server: Server) -> int:
    """How many live runs have the server in a turn that is not over."""
    turns = Turn.objects.exclude(status=TurnStatus.FINISHED.value).filter(
        run__account=server.account_id, bindings__has_key=server.name
    )
    return Run.objects.filter(turns__in=turns).distinct().count()


def _is(server: Server, values: ServerValues) -> bool:
    """Whether the row has this address and these secrets already; its name need not be resolved again then."""
    if server.pk is None or values.trusted > server.trusted:
        return False
    if (server.url, server.entry, server.headers) != (values.url, values.entry, dict(values.headers or {})):
        return False
    return server.identity == identity_of(server)


def _change(server: Server, values: ServerValues) -> None:
    """Fill and store. Another address forgets the saved handshake, and the trust in what stood at the old one."""
    before: str | None = server.identity
    _fill(server, values)
    if server.identity != before:
        server.negotiated, server.protocol_version, server.last_error = None, "", ""
        server.trusted = server.trusted and not before
    server.save()


def _refuse_while_used(server: Server, deed: str) -> None:
    count = uses(server)
    if count:
        runs = "1 live run uses" if count == 1 else f"{count} live runs use"
        raise StateConflict(
            f"{server.name} cannot be {deed} now: {runs} it. Wait for the end or cancel first.",
            details={"runs": count},
        )


def _locked(actor: Actor, server_id: int) -> Server:
    """Without the key, so that calls and rules that name the server are stored meanwhile."""
    return get(actor, Server.objects.select_for_update(no_key=True), pk=server_id)


def _fill(server: Server, values: ServerValues) -> None:
    server.name = _checked_name(server, values.name)
    server.trusted = values.trusted
    if values.url:
        _fill_http(server, values)
    else:
        _fill_stdio(server, values)
    binding = binding_of(server)
    server.identity = identity(binding)
    definitions.keep_address(server, binding)


def _fill_http(server: Server, values: ServerValues) -> None:
    if values.entry or values.command:
        raise wrong("url", "Give either a URL or a stdio entry, not both.")
    if len(values.url) > MAX_URL:
        raise wrong("url", f"The URL of a server has at most {MAX_URL:,} characters.")
    try:
        check_url(values.url, allow_private=settings.M3.allow_private_urls)
    except EgressRefused as error:
        raise EgressRefused(error.message, details=_field("url", error.message)) from error
    moved = server.url != values.url
    server.transport, server.url = Transport.HTTP.value, values.url
    server.entry, server.command, server.args, server.variables = "", "", [], {}
    if values.headers is not None:
        server.headers = _checked_headers(values.headers)
    elif moved:
        server.headers = {}  # a stored secret must never travel to another host than it was entered for


def _fill_stdio(server: Server, values: ServerValues) -> None:
    if not values.entry and not values.command:
        raise wrong("entry", "Choose an entry of the host's list, or give a URL.")
    if values.command:
        _check_command(values)
    elif values.entry not in entries():
        raise wrong("entry", f"The host's list of stdio servers has no entry “{values.entry[:60]}”.")
    moved = server.entry != values.entry
    server.transport, server.url, server.headers = Transport.STDIO.value, "", {}
    server.entry, server.command, server.args = values.entry, values.command, list(values.args)
    if values.variables is not None:
        server.variables = _checked_variables(values.entry, values.variables)
    elif moved:
        server.variables = {}


def _check_command(values: ServerValues) -> None:
    if values.entry:
        raise wrong("command", "Give either an entry or a command, not both.")
    if not may_hold_command():
        raise wrong("command", "Commands come from the host's list of stdio servers; choose an entry.")
    if len(values.command) > 500 or len(values.args) > MAX_ARGS:
        raise wrong("command", "The command or its list of arguments is too long.")
    if any("\x00" in part for part in (values.command, *values.args)):
        raise wrong("command", "A command cannot contain NUL characters.")


def _checked_name(server: Server, name: str) -> str:
    if not re.fullmatch(server_name.regex, name):
        raise wrong(
            "name",
            "A name starts with a letter or digit and has up to 60 letters, digits, dots, dashes or _.",
        )
    if name == "local":
        raise wrong("name", "“local” is the name of the built-in tools. Choose another.")
    Account.hold_names(server.account_id)
    if Server.objects.filter(account=server.account, name=name).exclude(pk=server.pk).exists():
        raise wrong("name", f"There is a server named {name} already.")
    return name


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    if len(headers) > MAX_HEADERS:
        raise wrong("headers", f"At most {MAX_HEADERS} headers.")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise wrong("headers", f"“{name[:60]}” is not the name of a header.")
        if name.lower() in _OURS or name.lower().startswith("mcp-"):
            raise wrong("headers", f"{name} is set by the connection itself; leave it out.")
        if len(value) > MAX_VALUE or not value.isascii() or not value.isprintable():
            raise wrong(
                "headers", f"The value of {name} is too long or has characters that a header cannot have."
            )
    return dict(headers)


def _checked_variables(entry: str, variables: Mapping[str, str]) -> dict[str, str]:
    known = entries().get(entry, ())
    for name, value in variables.items():
        if name not in known:
            raise wrong(
                "variables", f"The entry has no variable {name[:60]}. It has: {', '.join(known) or 'none'}."
            )
        if len(value) > MAX_VALUE or "\x00" in value:
            raise wrong("variables", f"The value of {name} is too long or contains NUL characters.")
    return dict(variables)


def wrong(field: str, message: str) -> ModelValidationError:
    """A mistake in one field of a form, named so that the page can put the sentence beside it."""
    return ModelValidationError(message, details=_field(field, message))


def _field(field: str, message: str) -> dict[str, list[dict[str, object]]]:
    return {"fields": [{"path": [field], "message": message}]}
