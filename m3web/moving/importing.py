"""Reading an account from a file into this installation: all of it in one transaction, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.db import DatabaseError, connection, models, transaction
from django.db.models.sql import InsertQuery
from django.utils import timezone

from m3web.moving import files, rows, sequences, tables, versions
from m3web.moving.refusals import Refused
from m3web.moving.secrets import Secrets
from runs import audit, binding, closing
from runs.models import LONG_AGO, UNRESOLVED, Account, Round, Run, Server, User
from runs.run_states import TurnStatus

_AT_ONCE = 200
_BYTES_AT_ONCE = 2**20
"""How much is stored with one statement: so many rows, or rows of so many bytes as JSON."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What to tell whoever imported."""

    head: files.Head
    notes: list[str] = field(default_factory=list)
    """Sentences about what is not here as it was there."""


def load(path: Path, secrets: Secrets, *, only_check: bool = False) -> Imported:
    """Import the account; with `only_check` store everything, look at it, and take it back. Raises Refused."""
    reader = files.Reader(path, secrets)
    head = reader.check()
    known = versions.migrations()
    if head.migrations != known:
        raise Refused(
            f"The file was written by version {head.product} with the tables {json.dumps(head.migrations)}; this "
            f"version has {json.dumps(known)}. Bring both installations to the same version, then export again."
        )
    try:
        with transaction.atomic():
            done = _Import(head, secrets.fernet).run(reader)
            connection.check_constraints()
            transaction.set_rollback(only_check)
    except DatabaseError as error:
        raise Refused(f"The database refuses it: {str(error).strip()}. Nothing was imported.") from error
    return done


class _Import:
    def __init__(self, head: files.Head, fernet: Fernet) -> None:
        self.head, self.fernet = head, fernet
        self.now = timezone.now()
        self.notes: list[str] = []
        self.alone = not User.objects.exists()
        """Nobody is here yet, so whoever ran the other installation may run this one."""

    def run(self, reader: files.Reader) -> Imported:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:  # a file may come from a slow disk
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        if Account.objects.filter(slug=self.head.slug).exists():
            raise Refused(f"There is an account {self.head.slug} here already. Nothing was imported.")
        for label, batch in _batches(reader.rows()):
            self._store(label, batch)
        sequences.advance(dict(self.head.sequences))
        account = Account.objects.get(pk=self.head.account)
        facts = {"from": self.head.product, "exported_at": self.head.at, "purpose": self.head.purpose}
        audit.note(
            account, None, closing.IMPORTED, f"account {account.pk}", {**facts, "digest": reader.digest}
        )
        self.notes += list(_servers_that_differ(account))
        return Imported(head=self.head, notes=self.notes)

    def _store(self, label: str, batch: list[dict[str, Any]]) -> None:
        try:
            model = tables.model_of(label)
            found = [rows.read(model, columns, self.fernet) for columns in batch]
        except LookupError as error:
            raise Refused(f"The file holds a table {label!r}, which this version does not have.") from error
        except (Refused, ValueError, TypeError) as error:
            raise Refused(f"A row of {label} cannot be read: {error}. Nothing was imported.") from error
        if label == tables.USERS:
            found = [row for row in found if isinstance(row, User) and self._is_new(row)]
        taken = model._base_manager.filter(pk__in=[row.pk for row in found]).values_list("pk", flat=True)[:1]
        for pk in taken:
            raise Refused(
                f"There is a {model._meta.verbose_name} {pk} here already, and ids are kept, because histories and "
                "programs name them. Import into an installation of its own; if accounts of one installation follow "
                "each other, export the later ones first. Nothing was imported."
            )
        for row in found:
            self._arrive(row)
        _insert(model, found)

    def _is_new(self, user: User) -> bool:
        """Whether a person has to be stored. Somebody who is here already, by id and name, stays as they are here."""
        clash = User.objects.filter(pk=user.pk) | User.objects.filter(username=user.username)
        known = list(clash.values_list("pk", "username"))
        if known == [(user.pk, user.username)]:
            self.notes.append(f"{user.username} was here already and keeps the password of here.")
            return False
        if known:
            raise Refused(
                f"User {user.pk} of the file is {user.username}; here that id or name is somebody else's. Import into "
                "an installation of its own. Nothing was imported."
            )
        if not self.alone and (user.is_superuser or user.is_staff):
            user.is_superuser = user.is_staff = False
            self.notes.append(f"{user.username} may not use /admin/ here; who may was decided before.")
        return True

    def _arrive(self, row: models.Model) -> None:
        """Nobody here has hold of anything yet, and a copy stays closed."""
        copied = self.head.purpose == "copy"
        match row:
            case Account():
                row.closed_at = self.now if copied else None
            case Run():
                row.lease_owner = row.pin = None
                row.lease_until = closing.NEVER if copied and row.status != TurnStatus.FINISHED else LONG_AGO
            case Round(status=status) if status in UNRESOLVED:
                row.lease_expires_at = min(row.lease_expires_at, self.now)


def _batches(lines: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows of one table each, in the order of the file."""
    label, batch, size = "", list[dict[str, Any]](), 0
    for table, columns in lines:
        if batch and (table != label or len(batch) >= _AT_ONCE or size >= _BYTES_AT_ONCE):
            yield label, batch
            batch, size = [], 0
        label = table
        batch.append(columns)
        size += sum(len(value) for value in columns.values() if isinstance(value, str))
    if batch:
        yield label, batch


def _insert(model: type[models.Model], found: list[models.Model]) -> None:
    """Store rows exactly as they are: `bulk_create` would set their times to now."""
    most = connection.ops.bulk_batch_size(list(model._meta.concrete_fields), found) if found else 1
    for start in range(0, len(found), most):
        some = found[start : start + most]
        try:
            with transaction.atomic():
                _insert_at_once(model, some)
        except DatabaseError:
            for row in some:
                _insert_alone(model, row)


def _insert_alone(model: type[models.Model], row: models.Model) -> None:
    """One row of a batch that was refused, to name the one it is about."""
    try:
        with transaction.atomic():
            _insert_at_once(model, [row])
    except DatabaseError as error:
        raise Refused(
            f"The database refuses {model._meta.verbose_name} {row.pk}: {str(error).strip()}. Nothing was imported."
        ) from error


def _insert_at_once(model: type[models.Model], found: list[models.Model]) -> None:
    query = InsertQuery(model)
    query.insert_values(list(model._meta.concrete_fields), found, raw=True)
    query.get_compiler(connection=connection).execute_sql()


def _servers_that_differ(account: Account) -> Iterator[str]:
    """Servers that this host does not offer as they were: their calls would fail, or ask because they changed."""
    for server in Server.objects.filter(account=account):
        try:
            changed = server.identity and binding.identity_of(server) != server.identity
        except binding.EntryUnavailableError as error:
            yield f"Server {server.name}: {error.message}"
            continue
        if changed:
            yield (
                f"Server {server.name} starts another command here ({server.address}): its rules are suspended and its "
                "calls ask until an admin has looked."
            )
