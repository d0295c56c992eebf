"""Making a call again whose live session is lost, with the answers that people have given already (A4, A23).

Only for calls that may be repeated: effectively read-only or idempotent, or allowed by an admin or a registration.
Answers are served in order, each only to the same prompt; the first prompt that differs ends it, and a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runs import clock, events, round_rows
from runs.lease import Lease
from runs.mcp_client import FormRequest, UrlRequest
from runs.models import Round
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import CallPhase
from runs.worker import asking, call_journal
from runs.worker.requests_in import stored_request

_PROMPT = ("mode", "message", "requested_schema", "url")
"""What makes two prompts the same. Ids and metadata are new with every call."""


def begin(here: call_journal.Place, lost: Sequence[Round], reason: str) -> None:
    """Go on without the lost session: at once, or when the person who is being asked has answered.

    `lost` are the unresolved rounds that it held; they wait on as parked ones, so that nobody is asked twice.
    """
    for round_ in lost:
        round_.held, round_.lease_owner, round_.lease_expires_at = False, "parked", clock.now()
        round_rows.save(round_)
        events.announce_round(round_)
    here.call.restarts += 1
    call_journal.make_ready(here, "tool_call.repeated", reason)
    if any(round_.status == RoundStatus.PENDING for round_ in lost):
        here.call.phase, here.call.allowed = CallPhase.INPUT_REQUIRED.value, False
        here.call.save(update_fields=["phase", "allowed"])


def stored_answer(
    lease: Lease, step_id: int, request: FormRequest | UrlRequest, served: int
) -> Mapping[str, Any] | None:
    """The stored answer to this prompt, the one after `served` others; None if a person must be asked.

    No new round and no event comes of a stored answer; its round counts as on its way from here on.
    """
    here = call_journal.at(lease, step_id)
    if not here.call.wire.get("replay"):
        return None
    answered = Round.objects.filter(
        step=here.step, kind=RoundKind.ELICITATION.value, responses__isnull=False
    ).exclude(status=RoundStatus.FAILED.value)
    round_ = (
        answered.select_related("run", "turn", "step").order_by("round_index")[served : served + 1].first()
    )
    if round_ is None or not _same_prompt(round_, stored_request(request)):
        call_journal.supersede_answers(here)
        here.call.wire = {**here.call.wire, "replay": False}
        here.call.save(update_fields=["wire"])
        return None
    call_journal.resolve_rounds(here.step)
    if round_.status == RoundStatus.RESPONSE_VALIDATED:
        asking.start_delivery(round_)
    (response,) = (round_.responses or {}).values()
    return dict(response)


def _same_prompt(round_: Round, asked: Mapping[str, Any]) -> bool:
    if len(round_.requests) != 1:
        return False  # asked by several keys at once, on another generation of the protocol
    (before,) = round_.requests.values()
    return all(before.get(part) == asked.get(part) for part in _PROMPT)
