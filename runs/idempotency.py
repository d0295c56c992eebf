"""What a caller sends twice under one key happens once (m8tes-http 1.10)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.errors import ModelValidationError, StateConflict
from runs.models import Account, IdempotencyKey, Turn

MAX_KEY = 200
KEPT_FOR = dt.timedelta(days=7)
"""How long a key is remembered at least; a client that tries again does so within minutes."""


class KeyReused(StateConflict):
    """The key stands for another request already."""

    code = "idempotency_key_reuse"


@dataclass(frozen=True)
class Receipt:
    """The turn that a request opened, now or when it came first."""

    turn: Turn
    replayed: bool


@transaction.atomic
def once(account: Account, key: str, request_digest: str, act: Callable[[], Turn]) -> Receipt:
    """Do `act` unless this key has come before; then give the turn that it opened at that time.

    The key and what `act` does are stored in one transaction: a refusal leaves the key free. Of two requests at once
    the second waits for the first one's key and gets its turn. `request_digest` tells one request from another.
    Raises ModelValidationError for a key that is none, KeyReused, and whatever `act` raises.
    """
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise ModelValidationError(f"An Idempotency-Key has 1 to {MAX_KEY} printable characters.")
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(account=account, key=key, request_digest=request_digest)
    except IntegrityError:
        return _replay(account, key, request_digest)
    row.turn = act()
    row.save(update_fields=["turn"])
    return Receipt(row.turn, replayed=False)


def forget(now: dt.datetime | None = None) -> int:
    """Delete the keys that are older than KEPT_FOR, and say how many; the runs stay."""
    deleted, _ = IdempotencyKey.objects.filter(created_at__lt=(now or timezone.now()) - KEPT_FOR).delete()
    return deleted


def _replay(account: Account, key: str, request_digest: str) -> Receipt:
    row = IdempotencyKey.objects.get(account=account, key=key)
    turn = Turn.objects.get(idempotency_keys=row)
    if row.request_digest != request_digest:
        raise KeyReused(
            "This Idempotency-Key came before with another request. Take a new key for a new request.",
            details={"run_id": turn.run_id},
        )
    return Receipt(turn, replayed=True)
