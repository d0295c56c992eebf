"""What is known of the task that a server answered a call with, kept in `ToolCall.wire` between two looks.

The call's phase stays what it is: `sent` while the server works, `input_required` while a person is asked. The task
is what makes the answer to come certain: whoever reads its id from the row can go on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from runs.models import Step, ToolCall
from runs.run_states import CallPhase
from runs.steps import MCP_KINDS, StepKind

KEY = "task"
"""The place in `ToolCall.wire`."""

BACKOFF_FIRST, BACKOFF_MOST = 1.0, 60.0
"""Seconds until the next look after one that came to nothing, doubled for each further one."""

MAX_CANCELS = 5
"""How often a server is told that nobody waits for its task any more, until it hears."""

_TIMES = ("begun_at", "look_at", "working_since")


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """A task as its call's row tells of it."""

    id: str
    server: str
    """Digest of what the server was when it began the task: no other one is asked about it or given its answers."""
    begun_at: dt.datetime
    """When we first heard of it."""
    look_at: dt.datetime | None = None
    """When to look, or to cancel, next; None for at once."""
    ttl: float | None = None
    """Seconds from its beginning for which the server promises to know it; None without a promise."""
    worked: float = 0.0
    """Seconds that the server has worked, without the stretch since `working_since`."""
    working_since: dt.datetime | None = None
    """None while it waits for a person, whose time does not count."""
    answered: tuple[str, ...] = ()
    """Keys whose answers the server has acknowledged."""
    unheard: int = 0
    """Looks in a row that came to nothing."""
    cancels: int = 0
    """How often the server was told, in vain, that nobody waits for it."""
    over: bool = False
    """Nothing is left to look at or to cancel."""

    def kept(self, now: dt.datetime) -> bool:
        """Whether the server still has to know the task, as far as it has promised anything."""
        return self.ttl is None or (now - self.begun_at).total_seconds() < self.ttl

    def working_seconds(self, now: dt.datetime) -> float:
        return self.worked + ((now - self.working_since).total_seconds() if self.working_since else 0.0)

    def paused(self, now: dt.datetime) -> TaskFacts:
        """A person's turn: the clock stands still, and the answer will be reason enough to look."""
        return replace(self, worked=self.working_seconds(now), working_since=None, look_at=None, unheard=0)

    def at_work(self, now: dt.datetime) -> TaskFacts:
        return replace(self, working_since=self.working_since or now)

    def unheard_again(self, now: dt.datetime) -> TaskFacts:
        return replace(self, look_at=_later(now, self.unheard), unheard=self.unheard + 1)

    def told_in_vain(self, now: dt.datetime) -> TaskFacts:
        cancels = self.cancels + 1
        return replace(self, look_at=_later(now, self.cancels), cancels=cancels, over=cancels >= MAX_CANCELS)

    def stored(self) -> dict[str, Any]:
        """As it goes into the wire facts of a call."""
        times = {name: getattr(self, name).isoformat() for name in _TIMES if getattr(self, name)}
        return {**asdict(self), **dict.fromkeys(_TIMES), **times, "answered": list(self.answered)}


def _later(now: dt.datetime, tries: int) -> dt.datetime:
    return now + dt.timedelta(seconds=min(BACKOFF_FIRST * 2.0 ** min(tries, 10), BACKOFF_MOST))


def of(call: ToolCall) -> TaskFacts | None:
    """The latest task of a call, if any of its attempts was answered with one."""
    stored: Mapping[str, Any] | None = call.wire.get(KEY)
    if not stored:
        return None
    times = {name: dt.datetime.fromisoformat(stored[name]) for name in _TIMES if stored[name]}
    return TaskFacts(**{**stored, **times, "answered": tuple(stored["answered"])})


def followed(call: ToolCall) -> TaskFacts | None:
    """The task whose end this call waits for; None if it waits for none."""
    if call.allowed or call.phase not in (CallPhase.SENT, CallPhase.INPUT_REQUIRED):
        return None
    task = of(call)
    return None if task is None or task.over else task


def forsaken(step: Step) -> TaskFacts | None:
    """A task that may still be at work although its call has ended: its server is to be told."""
    if StepKind(step.kind) not in MCP_KINDS or step.result is None:
        return None
    task = of(step.call)
    return None if task is None or task.over else task


def wanted_at(step: Step) -> dt.datetime | None:
    """When the step's task wants the next look, or its server to be told; None if that is now, or if there is none."""
    task = followed(step.call) or forsaken(step)
    first_telling = task is not None and step.result is not None and not task.cancels
    return None if task is None or first_telling else task.look_at
