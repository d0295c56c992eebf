"""The texts behind digests: how a tool was described, and where a server was, when a turn froze it or a rule pinned it.

Written whenever a listing or a server is stored, so that a change can be shown as what it is (R28). Nothing here is
needed to decide: where a text is not kept, its digest still tells that something has changed.
"""

from __future__ import annotations

import datetime as dt
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from django.utils import timezone

from runs.binding import EntryUnavailableError, binding_of
from runs.mcp_client import Binding, HttpBinding, ToolDefinition, identity
from runs.models import SeenAddress, SeenDefinition, Server, Tool, ToolCall, Turn
from runs.models.exact import shown
from runs.redaction import redact_command, redact_urls

MAX_VERSIONS = 100
"""Definitions of one name that an account keeps. A server that changes with every look must not fill the disk; the
oldest stay, because those are the ones that rules were made for."""

MAX_KEPT = 50_000
"""Definitions that one account keeps."""

MAX_ADDRESS = 4_000
MAX_TITLE = 200
UNUSED_FOR = dt.timedelta(days=30)


class Described(Protocol):
    """How a tool was described: a row of what was seen, or of what is listed."""

    name: str
    title: str
    description: str
    input_schema: Any
    output_schema: Any
    annotations: Any


def keep(account_id: int, listed: Sequence[ToolDefinition]) -> None:
    """Remember the definitions of a listing that are not known yet; beyond the bounds they are not."""
    by_digest = {one.digest: one for one in listed}
    known = SeenDefinition.objects.filter(account=account_id)
    seen = set(known.filter(digest__in=by_digest).values_list("digest", flat=True))
    # In one order, so that two listings at once do not wait for each other.
    new = [by_digest[digest] for digest in sorted(by_digest.keys() - seen)]
    if not new or known.count() + len(new) > MAX_KEPT:
        return
    names = known.filter(name__in=[one.name for one in new]).values_list("name", flat=True)
    versions = Counter(names)
    SeenDefinition.objects.bulk_create(
        [_row(account_id, one) for one in new if versions[one.name] < MAX_VERSIONS], ignore_conflicts=True
    )


def keep_address(server: Server, binding: Binding) -> None:
    """Remember where the server is, without its secrets, under its identity."""
    SeenAddress.objects.get_or_create(
        account_id=server.account_id,
        identity=identity(binding),
        defaults={"address": address_of(binding)},
    )


def keep_present_address(server: Server) -> None:
    """The same for what stands behind the server now, which the host may have changed; nothing if it is gone."""
    try:
        keep_address(server, binding_of(server))
    except EntryUnavailableError:
        return


def address_of(binding: Binding) -> str:
    """The URL, or the command line as a shell reads it. Secrets are masked, headers and variables are no part of it."""
    if isinstance(binding, HttpBinding):
        text = redact_urls(binding.url)
    else:
        text = shlex.join(redact_command((binding.command, *binding.args)))
    return text if len(text) <= MAX_ADDRESS else f"{text[: MAX_ADDRESS - 1]}…"


def recall(account_id: int, digests: Iterable[str]) -> Mapping[str, Described]:
    """The definitions behind these digests, as far as they are kept or still listed."""
    wanted = set(digests) - {""}
    listed = Tool.objects.filter(server__account=account_id, digest__in=wanted)
    seen = SeenDefinition.objects.filter(account=account_id, digest__in=wanted)
    found: dict[str, Described] = {row.digest: row for row in listed}
    return found | {row.digest: row for row in seen}


def addresses(account_id: int, identities: Iterable[str]) -> Mapping[str, str]:
    """Where the servers of these identities are or were, as far as that is kept."""
    rows = SeenAddress.objects.filter(account=account_id, identity__in=set(identities) - {""})
    return dict(rows.values_list("identity", "address"))


def forget(
    account_id: int, *, pinned: Collection[str], unused_for: dt.timedelta = UNUSED_FOR
) -> tuple[int, int]:
    """Delete what nothing refers to any more; returns how many definitions and how many addresses.

    Kept are: whatever is younger than `unused_for`, what servers list now, what a turn or a call of the account names,
    and `pinned`, the digests and identities that rules name (this package knows no rules).
    """
    until = timezone.now() - unused_for
    definitions = SeenDefinition.objects.filter(account=account_id, seen_at__lt=until).exclude(
        digest__in=Tool.objects.filter(server__account=account_id).values("digest")
    )
    places = SeenAddress.objects.filter(account=account_id, seen_at__lt=until).exclude(
        identity__in=Server.objects.filter(account=account_id).values("identity")
    )
    called = ToolCall.objects.filter(step__run__account=account_id).values("definition_digest")
    unused = {
        *definitions.exclude(digest__in=called).values_list("digest", flat=True),
        *places.values_list("identity", flat=True),
    }
    unused -= set(pinned)
    for bindings in (
        Turn.objects.filter(run__account=account_id).values_list("bindings", flat=True).iterator()
    ):
        if not unused:
            break
        unused -= _named(bindings)
    # One by one: there may be more of them than a statement can carry, and they are few as a rule.
    return (
        sum(definitions.filter(digest=one).delete()[0] for one in unused),
        sum(places.filter(identity=one).delete()[0] for one in unused),
    )


def _named(bindings: Mapping[str, Any]) -> set[str]:
    """The digests and identities that a turn froze."""
    named: set[str] = set()
    for bound in bindings.values():
        named |= {bound["identity"], *bound["tools"].values()}
    return named


def _row(account_id: int, definition: ToolDefinition) -> SeenDefinition:
    return SeenDefinition(
        account_id=account_id,
        digest=definition.digest,
        name=definition.name,
        title=shown(definition.title or "", MAX_TITLE),
        description=definition.description,
        input_schema=dict(definition.input_schema),
        output_schema=dict(definition.output_schema) if definition.output_schema is not None else None,
        annotations=dict(definition.annotations),
    )
