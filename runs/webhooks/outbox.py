"""Writing deliveries: in the transaction of the event that they tell of, for whoever asked to be told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from runs import clock, notices, write_behind
from runs.asked import QUESTION_TOOL, requests_of
from runs.durations import utc_text
from runs.models import Account, EndUser, Event, Round, Run, Turn, WebhookDelivery, WebhookEndpoint
from runs.prepared import Param, Rows
from runs.redaction import redact
from runs.webhooks.words import STATUS, TOLD, WebhookEvent

MAX_OUTPUT: Final = 100_000
"""Characters of a run's output that are sent; whoever gets less is told so."""

_ACTIVE = Param("account", Account._meta.pk)
_OF_ACCOUNT: Rows[WebhookEndpoint] = Rows(
    lambda: WebhookEndpoint.objects.filter(account=_ACTIVE, end_user=None, active=True)
)
_OF_END_USER: Rows[WebhookEndpoint] = Rows(
    lambda: WebhookEndpoint.objects.filter(
        account=_ACTIVE, end_user=Param("end_user", EndUser._meta.pk), active=True
    )
)

_wake: Callable[[], None] | None = None


def wakes(wake: Callable[[], None] | None) -> None:
    """Call `wake`, from any thread, after each commit that wrote a delivery; None leaves them to be found."""
    global _wake
    _wake = wake


Noted = tuple[WebhookEvent, Event, Run, Turn | None]


def note(event: Event, run: Run, turn: Turn | None) -> None:
    """Store what an event is worth to the endpoints of its run's scope; nothing for most."""
    told = TOLD.get(event.type)
    if told is None:
        return
    if run.end_user_id is None:
        endpoints = _OF_ACCOUNT.asked(account=run.account_id)
    else:
        endpoints = _OF_END_USER.asked(account=run.account_id, end_user=run.end_user_id)
    scope = run.account_id, run.end_user_id
    write_behind.at_end(_store, (told, event, run, turn), endpoints, key=scope)


def _store(noted: Sequence[Noted], answers: Sequence[Any]) -> None:
    (endpoints,) = answers
    if endpoints:
        for told, event, run, turn in noted:
            _store_one(_message_or_run(told, turn), event, run, endpoints)


def _store_one(told: WebhookEvent, event: Event, run: Run, endpoints: Sequence[WebhookEndpoint]) -> None:
    wanted = [endpoint for endpoint in endpoints if told.value in endpoint.events]
    if not wanted:
        return
    event_id, now = f"evt_{uuid.uuid4().hex}", clock.now()
    body = json.dumps(_body(event, run, told, event_id))
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            endpoint=endpoint,
            run=run,
            event_type=told.value,
            event_id=event_id,
            body=body,
            next_retry_at=now,
        )
        for endpoint in wanted
    )
    announce()


def announce() -> None:
    """Tell a sender once the transaction has committed: that of this process, or those of workers elsewhere."""
    transaction.on_commit(look if _wake is not None else _tell_workers, robust=True)


def look() -> None:
    """Have the sender of this process look for what is due, if there is one. From any thread."""
    if _wake is not None:
        _wake()


def _tell_workers() -> None:
    notices.send(notices.WEBHOOKS, "")


def _message_or_run(told: WebhookEvent, turn: Turn | None) -> WebhookEvent:
    """The end of a turn that only waited behind others is that of a message, not of the run."""
    if told is not WebhookEvent.CANCELLED or turn is None or turn.index == 0 or turn.started_at is not None:
        return told
    before = Turn.objects.filter(run=turn.run_id, index=turn.index - 1).values_list("finished_at", flat=True)
    ended = before.first()
    waited = ended is None or ended > turn.created_at
    return WebhookEvent.MESSAGE_CANCELLED if waited else told


def _body(event: Event, run: Run, told: WebhookEvent, event_id: str) -> dict[str, Any]:
    data = {
        "id": run.pk,
        "status": STATUS[told].value,
        "agent_id": run.agent_id,
        "user_id": run.end_user.user_id if run.end_user else None,
        "metadata": run.metadata,
        **_more(event.payload, told),
    }
    return {
        "id": event_id,
        "type": told.value,
        "created_at": utc_text(event.at),
        "data": redact(data),
    }


def _more(payload: Mapping[str, Any], told: WebhookEvent) -> dict[str, Any]:
    """What each event tells beside which run it is about."""
    if told is WebhookEvent.AWAITING_INPUT:
        return _asked(payload)
    if told in (WebhookEvent.STARTED, WebhookEvent.MESSAGE_RECEIVED):
        return {"message": payload.get("message")}
    if told is WebhookEvent.COMPLETED:
        output = payload.get("output") or ""
        cut = {"output_truncated": True} if len(output) > MAX_OUTPUT else {}
        return {"output": output[:MAX_OUTPUT], **cut}
    return {"error": payload.get("error"), "error_code": payload.get("error_code")}


def _asked(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The ids to answer, and the questions if there are any; a tool's approval has none (m8tes-http 7)."""
    asked = requests_of(Round.objects.for_cards().get(pk=payload["round_id"]))
    questions = [
        question
        for request in asked
        if request.tool_name == QUESTION_TOOL and request.tool_input
        for question in request.tool_input["questions"]
    ]
    ids = [request.request_id for request in asked]
    return {"request_ids": ids, **({"questions": questions} if questions else {})}
