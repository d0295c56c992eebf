"""The header under which a client may send a change twice (m8tes-http 1.10)."""

from __future__ import annotations

from collections.abc import Callable

from rest_framework.request import Request

from runs import idempotency
from runs.access import Actor
from runs.canonical import digest
from runs.idempotency import Receipt
from runs.models import Turn

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replay"


def once(actor: Actor, request: Request, act: Callable[[], Turn]) -> Receipt:
    """`act` under the request's key, or simply `act` without one. Raises what `runs.idempotency.once` raises."""
    key = request.headers.get(HEADER)
    if key is None:
        return Receipt(act(), replayed=False)
    said = digest([request.method, request.get_full_path(), request.data])
    return idempotency.once(actor.account, key, said, act)
