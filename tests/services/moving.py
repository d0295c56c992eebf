"""What the tests of moving share: an account that is gone from here, and the rows of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.db import transaction

from m3web.moving import importing, secrets, tables
from runs.models import Account, User


def wipe(account: Account) -> None:
    """As if it had never been here."""
    users = [row.pk for row in tables.rows_of(tables.USERS, account)]
    with transaction.atomic():
        for label in reversed(tables.labels()[1:]):
            rows = tables.model_of(label)._base_manager.filter(
                pk__in=list(tables.rows_of(label, account).values_list("pk", flat=True))
            )
            rows._raw_delete(rows.db)
        User.objects.filter(pk__in=users).delete()


def load(path: Path, **how: Any) -> importing.Imported:
    return importing.load(path, secrets.own(), **how)


def lines_of(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()[1:-1]]
