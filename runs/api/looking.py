"""One look at a run for a reader of its stream: the next events with what they refer to, and whether it goes on.

Everything is read in a thread whose connection goes back at once, so that a reader who waits holds none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeVar

from channels.db import database_sync_to_async
from django.db.models import Max

from runs import keys
from runs.api.frames import AGENT_TOOL, Call, Happening
from runs.asked import QUESTION_TOOL, PermissionRequest, requests_of, tool_use_id
from runs.models import Event, Round, Run, Step, Turn
from runs.run_states import TurnStatus
from runs.steps import MCP_KINDS, StepKind

T = TypeVar("T")

BATCH: Final = 10
"""Events of one look; what a reader holds in memory at a time."""

_threads = ThreadPoolExecutor(4, thread_name_prefix="m3-stream")
"""Readers take turns: many of them never use more connections than this, whatever the size of the pool."""


class State(Enum):
    """Where a run stands after the events of a look."""

    MORE = auto()
    """There are more events already."""
    WORKING = auto()
    WAITING = auto()
    """Nothing goes on until somebody decides."""
    OVER = auto()


@dataclass(frozen=True, kw_only=True)
class Look:
    """`ended` are runs under this one that have ended since, `waiting` the open requests of a run that waits."""

    state: State
    last_turn: int
    happenings: Sequence[Happening] = ()
    ended: Sequence[Call] = ()
    waiting: Sequence[PermissionRequest] = ()


_asked: dict[tuple[Any, ...], asyncio.Task[Any]] = {}
"""What somebody asked for and what has not begun."""


async def look(run_id: int, after: int, children: Collection[int] = ()) -> Look:
    """What has happened in a run after event number `after`; `children` are steps whose runs had not ended."""
    return await _shared(_look, run_id, after, tuple(children))


async def may_read(user_id: int, account_id: int) -> bool:
    """Whether a reader would be let in now: their key, or they and their membership, and the account."""
    return await _shared(keys.still_acts, user_id, account_id)


async def _shared(read: Callable[..., T], *about: Any) -> T:
    """What `read` finds about this.

    Readers that a hint wakes together, and that have read as far, share one look: what they ask is the same. One that
    has begun is not shared, because it may have missed what they were woken for.
    """
    asked = (asyncio.get_running_loop(), read, *about)
    if asked not in _asked:
        _asked[asked] = asyncio.create_task(_begin(asked))
    found: T = await asyncio.shield(_asked[asked])
    return found


async def _begin(asked: tuple[Any, ...]) -> Any:
    await asyncio.sleep(0)  # for the others, whom the loop wakes in the same turn
    del _asked[asked]
    _, read, *about = asked
    return await database_sync_to_async(read, thread_sensitive=False, executor=_threads)(*about)


def _look(run_id: int, after: int, children: Sequence[int]) -> Look:
    # The state is read before the events. If these end where the run stood then, both belong together.
    run = Run.objects.filter(pk=run_id).values("event_seq", "status").first()
    if run is None:
        return Look(state=State.OVER, last_turn=0)
    last_turn = Turn.objects.filter(run=run_id).aggregate(last=Max("index"))["last"] or 0
    state = _state(run_id, run["status"])
    open_rounds = _open_rounds(run_id) if state is State.WAITING else []
    events = list(Event.objects.filter(run=run_id, seq__gt=after).order_by("seq")[:BATCH])
    if (events[-1].seq if events else after) != run["event_seq"]:
        state = State.MORE
    return Look(
        state=state,
        last_turn=last_turn,
        happenings=_happenings(run_id, events),
        ended=[call for call in _calls(run_id, children).values() if call.result is not None],
        waiting=[request for round_ in open_rounds for request in requests_of(round_)],
    )


def _state(run_id: int, status: str) -> State:
    if status == TurnStatus.FINISHED:
        return State.OVER
    if status != TurnStatus.WAITING_FOR_INPUT:
        return State.WORKING
    pending = Round.objects.filter(run=run_id).pending()
    at_work = Step.objects.filter(run=run_id, result__isnull=True).exclude(rounds__in=pending)
    return State.WORKING if at_work.exists() else State.WAITING


def _open_rounds(run_id: int) -> list[Round]:
    return list(Round.objects.for_cards().filter(run=run_id).pending().order_by("created_at", "pk"))


def _happenings(run_id: int, events: Sequence[Event]) -> list[Happening]:
    calls = _calls(run_id, {event.payload["step"] for event in events if event.payload.get("step")})
    ids = {id_ for event in events if (id_ := _round_id(event.payload))}
    rounds = Round.objects.for_cards().in_bulk(ids)
    return [
        Happening(
            seq=event.seq,
            type=event.type,
            payload=event.payload,
            call=calls.get(event.payload.get("step") or 0),
            requests=requests_of(found) if (found := rounds.get(_round_id(event.payload) or "")) else (),
        )
        for event in events
    ]


def _round_id(payload: Mapping[str, Any]) -> str | None:
    """The pause that an event is about; what a client answers is named after it."""
    return payload.get("round_id") or payload.get("request_id")


def _calls(run_id: int, numbers: Collection[int]) -> dict[int, Call]:
    """The steps with these numbers that count as tool calls."""
    steps = Step.objects.filter(run=run_id, seq__in=numbers).values(
        "seq", "kind", "params", "result", "call__server_name", "call__name", "call__asked"
    )
    return {step["seq"]: call for step in steps if (call := _call(run_id, step)) is not None}


def _call(run_id: int, step: Mapping[str, Any]) -> Call | None:
    kind, params = StepKind(step["kind"]), step["params"]
    if kind in MCP_KINDS:
        name, arguments = f"{step['call__server_name']}:{step['call__name']}", step["call__asked"]
    elif kind is StepKind.ASK:
        name, arguments = QUESTION_TOOL, {"questions": params["questions"]}
    elif kind is StepKind.PLAN:
        name, arguments = QUESTION_TOOL, {"plan": params["text"]}
    elif kind is StepKind.RUN:
        name, arguments = AGENT_TOOL, {"agent": params["agent"], "message": params["message"]}
    else:
        return None
    number = step["seq"]
    return Call(
        id=tool_use_id(run_id, number), step=number, name=name, arguments=arguments, result=step["result"]
    )
