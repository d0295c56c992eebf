"""Recording what happened: one row in the change's own transaction, hash-chained per run, and a hint on commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from runs import chains, push, row_writes, write_behind
from runs.canonical import digest
from runs.models import Account, Event, Round, Run, Turn, User
from runs.prepared import Number, Param, Rows, Update
from runs.webhooks import outbox

WORKER = "worker"

_THE_RUN = Param("run", Run._meta.pk)


_LAST: Rows[tuple[int, str, str]] = Rows(
    lambda: (
        Run.objects.select_for_update(no_key=True)
        .filter(pk=_THE_RUN)
        .values_list("event_seq", "event_head", "status")
    )
)
_APPEND = Update(
    lambda: (
        Run.objects.filter(
            pk=_THE_RUN,
            event_seq=Param.of(Run, "event_seq", "last"),
            event_head=Param.of(Run, "event_head", "previous"),
            status=Param.of(Run, "status"),
        ),
        {"event_seq": Param.of(Run, "event_seq", "seq"), "event_head": Param.of(Run, "event_head", "hash")},
    )
)
PENDING: Rows[tuple[int]] = Rows(
    lambda: (
        Round.objects.filter(account=Param("account", Account._meta.pk))
        .pending()
        .order_by()
        .values_list(Number())
    )
)
"""How many pauses of an account wait for people."""


def record(
    run: Run,
    type_: str,
    payload: Mapping[str, Any] | None = None,
    *,
    turn: Turn | None = None,
    actor: User | None = None,
    actor_name: str = WORKER,
) -> Event:
    """Append an event to `run`'s history. Must be called inside the transaction of the change it tells of.

    The UPDATE of the run row serialises writers of one run, so sequence and chain have no gaps or forks: it changes
    nothing if another event came after the last one that `run` knows of, which is then read, and tried again. An
    instance that is held (`runs.write_behind`) knows the last one.
    `run` keeps its other (possibly unsaved) attributes; only its event counters and its status are those of the row.
    """
    event = Event(
        account_id=run.account_id,
        run=run,
        turn=turn,
        type=type_,
        payload=dict(payload or {}),
        actor=actor,
        actor_name=actor.get_username() if actor else actor_name,
    )
    if write_behind.is_held(run):
        _follow(run, event)
        run.event_seq, run.event_head = event.seq, event.hash
        row_writes.save(run, ("event_seq", "event_head"))
    else:
        while not _append(run, event):
            ((run.event_seq, run.event_head, run.status),) = _LAST(run=run.pk)
        run.event_seq, run.event_head = event.seq, event.hash
        write_behind.changed(run)
    row_writes.insert(event, key_needed=False)
    outbox.note(event, run, turn)
    push.after_commit(
        (push.run_group(run.pk), push.runs_group(run.account_id)),
        {"type": "run", "run_id": run.pk, "status": run.status, "seq": run.event_seq},
    )
    return event


def _append(run: Run, event: Event) -> bool:
    """Chain the event to the last one that `run` knows of; False if that is not the last one, or its status not so."""
    _follow(run, event)
    known = {"last": run.event_seq, "previous": run.event_head, "status": run.status}
    return bool(_APPEND(run=run.pk, **known, seq=event.seq, hash=event.hash))


def _follow(run: Run, event: Event) -> None:
    """Make the event the next one after the last one that `run` knows of."""
    event.seq, event.at, event.previous = run.event_seq + 1, timezone.now(), run.event_head
    event.hash = chain_hash(event)


def chain_hash(event: Event) -> str:
    """Digest over an event's content and the hash before it."""
    return digest(content(event))


def content(event: Event) -> dict[str, Any]:
    """What the hash of an event covers."""
    return chains.event_content(
        run=event.run_id,
        turn=event.turn_id,
        seq=event.seq,
        type_=event.type,
        payload=event.payload,
        actor=event.actor_name,
        at=event.at,
        previous=event.previous,
    )


def announce_round(round_: Round) -> None:
    """Hint that a pause opened, changed or ended, with the number that now wait in the account."""
    hint: push.PauseHint = {
        "type": "pause",
        "pause_id": round_.pk,
        "run_id": round_.run_id,
        "status": round_.status,
        "version": round_.version,
        "pending_count": 0,
    }
    account = round_.account_id
    write_behind.at_end(_announce, (account, hint), PENDING.asked(account=account), key=account)


def _announce(hints: Sequence[tuple[int, push.PauseHint]], answers: Sequence[Any]) -> None:
    (((count,),),) = answers
    for account, hint in hints:
        hint["pending_count"] = count
        push.after_commit((push.inbox_group(account), push.run_group(hint["run_id"])), hint)
