"""Writing an account into a file: closed first, then read in one snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from django.db import connection, transaction
from django.utils import timezone

from m3web import __version__
from m3web.moving import files, rows, secrets, sequences, tables, versions
from m3web.moving.refusals import Refused
from runs import closing
from runs.durations import utc_text
from runs.errors import StateConflict
from runs.models import UNRESOLVED, Account, LedgerEntry, Round, Run

_AT_ONCE = 50
"""Rows that are in memory at the same time; one may hold megabytes of a server's reply."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What to tell whoever exported."""

    rows: int
    digest: str
    live_runs: int
    live_sessions: list[tuple[int, str]] = field(default_factory=list)
    """(run, server) of pauses that wait on a process here, which cannot move."""


def hand_over(account: Account, path: Path, *, alone: bool) -> Exported:
    """Close the account here and write it; where that fails, it is open again as before.

    One that was handed over before is written again. `alone` as for `closing.close`. Raises Refused.
    """
    was_open = account.closed_at is None
    if not was_open and not _was_handed_over(account):
        raise Refused(
            f"{account.name} came as a copy and is closed. If it goes on nowhere else, reopen it first."
        )
    with files.Writer(path, secrets.own()) as file:
        try:
            closing.close(account.pk, alone=alone)
        except StateConflict as error:
            raise Refused(error.message) from error
        try:
            return _write(account, file, "handover")
        except BaseException:
            if was_open:
                closing.reopen(account.pk)
            raise


def copy(account: Account, path: Path) -> Exported:
    """Write the account as it is at one moment, while it goes on here. Raises Refused."""
    with files.Writer(path, secrets.own()) as file:
        return _write(account, file, "copy")


def _was_handed_over(account: Account) -> bool:
    """Whether it was closed by an export, and not by having come as a copy."""
    steps = [closing.HANDED_OVER, closing.REOPENED, closing.IMPORTED]
    last = LedgerEntry.objects.filter(account=account, action__in=steps).order_by("-seq").first()
    return last is not None and last.action == closing.HANDED_OVER


def _write(account: Account, file: files.Writer, purpose: Literal["handover", "copy"]) -> Exported:
    fernet = secrets.own().fernet
    with snapshot():
        head = _head(account, purpose)
        file.head(head)
        for label in tables.labels():
            moving = rows.readable(tables.rows_of(label, account))
            for row in moving.iterator(chunk_size=_AT_ONCE):
                try:
                    columns = rows.written(row, fernet)
                except Refused as error:
                    raise Refused(
                        f"A secret of {label} {row.pk} cannot be read: {error}. Enter it anew."
                    ) from error
                file.row(label, columns)
        return Exported(
            rows=sum(head.rows.values()),
            live_runs=Run.objects.live().filter(account=account).count(),
            live_sessions=_live_sessions(account),
            digest=file.finish(),
        )


def _head(account: Account, purpose: Literal["handover", "copy"]) -> files.Head:
    return files.Head(
        product=__version__,
        migrations=versions.migrations(),
        account=account.pk,
        slug=account.slug,
        name=account.name,
        purpose=purpose,
        at=utc_text(timezone.now()),
        rows={label: tables.rows_of(label, account).count() for label in tables.labels()},
        sequences=sequences.highest(),
    )


def _live_sessions(account: Account) -> list[tuple[int, str]]:
    held = Round.objects.filter(account=account, held=True, status__in=UNRESOLVED)
    return list(held.order_by("run").values_list("run", "server_name").distinct())


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """Everything that is read inside is as it was at one moment; nobody who writes meanwhile waits."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
        return
    connection.ensure_connection()
    opened: Any = connection
    before = opened.transaction_mode
    opened.transaction_mode = "DEFERRED"  # the usual one would lock out writers
    try:
        with transaction.atomic():
            yield
    finally:
        opened.transaction_mode = before
