"""What a leg that is under way writes: prompts of its live session, progress, the server as it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs import push, servers, turns
from runs.errors import ElicitationRoundLimitError
from runs.lease import Lease
from runs.lease import fence as fence_lease
from runs.mcp_client import FormRequest, Inspection, UrlRequest
from runs.models import Round, Server
from runs.run_states import Outcome
from runs.worker import asking, call_journal, session_rows
from runs.worker.requests_in import stored_request


@dataclass(frozen=True)
class Unanswerable:
    """A prompt that finds no answer, and how its turn therefore ends."""

    reason: str
    code: str


def open_held(
    lease: Lease, step_id: int, request: FormRequest | UrlRequest, delivered: set[str]
) -> Round | Unanswerable:
    """The round that a live session waits on, answered already if by a plan; or why nothing can answer.

    A prompt that is put once more because this worker attached to the session has its round already. `delivered`
    are the rounds whose answers this worker has handed over.
    """
    here = call_journal.at(lease, step_id)
    known = session_rows.asked_before(here, request, delivered)
    if known is not None:
        return known
    stored = {request.key: stored_request(request)}
    refusal = asking.refusal(here.run, here.turn, here.call, stored)
    if refusal is not None:
        return Unanswerable(refusal, asking.HUMAN_INPUT_REQUIRED)
    call_journal.resolve_rounds(here.step)
    session_rows.withdraw(here)  # prompts come one after the other: nobody waits for an older one any more
    place = session_rows.place(here.call, request)
    try:
        return asking.elicitation(here.run, here.turn, here.step, stored, held_by=lease, place=place)
    except ElicitationRoundLimitError as error:
        return Unanswerable(error.message, error.code)


def start_held_delivery(lease: Lease, round_id: str) -> None:
    fence_lease(lease)
    asking.start_delivery(Round.objects.select_related("run", "turn", "step").get(pk=round_id))


def end_unanswered(lease: Lease, step_id: int, why: Unanswerable) -> None:
    """The server was refused an answer, because nobody may be asked or it asked too often: the run fails clearly
    (A3, C42)."""
    here = call_journal.at(lease, step_id)
    turns.finish(here.run, here.turn, Outcome.FAILED, error=why.reason, error_code=why.code)


def store_look(lease: Lease, step_id: int, inspection: Inspection) -> None:
    """Keep what was listed. A server's very first listing is also what the turn is taken to have started with."""
    here = call_journal.at(lease, step_id)
    server = here.call.server
    if server is None:
        return
    first = server.listed_at is None
    server = servers.store_inspection(server, inspection)
    if first:
        tools = {tool.name: tool.digest for tool in server.tools.filter(present=True)}
        binding = {"server_id": server.pk, "identity": server.identity, "tools": tools}
        here.turn.bindings = {**here.turn.bindings, server.name: binding}
        here.turn.save(update_fields=["bindings"])


def store_progress(lease: Lease, step_id: int, note: Mapping[str, Any]) -> None:
    here = call_journal.at(lease, step_id)
    here.call.wire = {**here.call.wire, "progress": dict(note)}
    here.call.save(update_fields=["wire"])
    show_progress(here)


def show_progress(here: call_journal.Place) -> None:
    """Progress is no event; whoever has the run's page open hears of it all the same."""
    push.after_commit(
        (push.run_group(here.run.pk),),
        {"type": "run", "run_id": here.run.pk, "status": here.run.status, "seq": here.run.event_seq},
    )


def store_negotiation(server_id: int, negotiated: dict[str, Any]) -> None:
    Server.objects.filter(pk=server_id).update(negotiated=negotiated)
