"""The rows of a run's timeline as values. Texts in them come from agents, servers and people: show them as text."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

Tone = Literal["neutral", "ok", "warn", "error", "muted"]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A text that is folded away: arguments, a result.

    `part` names the whole of it for the text view when `text` is only its beginning, else it is "".
    """

    label: str
    text: str
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question or field and what a person put there; `text` is "" for declined or cancelled."""

    label: str
    text: str
    action: str = "accept"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A policy that decided something: `lead` is the beginning of the sentence that names it, `sentence` what it says.

    `gone` says what became of one that is not there any more, and cannot be revoked; it is "" while it is.
    """

    id: int
    lead: str
    sentence: str
    gone: str = ""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A round inside its step: what it waits for, or who ended it how, when, why and by which way (R14, R31).

    `why` is a reason that no policy stands behind, `rule` the policy that closed it, or that was remembered with the
    decision (R9, R29).
    """

    id: str
    kind: str
    sentence: str
    at: dt.datetime
    tone: Tone
    pending: bool
    delivery: str = ""
    note: str = ""
    deadline: dt.datetime | None = None
    answers: tuple[Answer, ...] = ()
    why: str = ""
    rule: Rule | None = None


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that happened within a step, e.g. that a call was made again."""

    at: dt.datetime
    text: str


@dataclass(frozen=True, kw_only=True)
class Child:
    """A run that this run started."""

    run_id: int
    agent: str
    status: str
    outcome: str | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the timeline.

    `key` is stable and unique within the run, `order` sorts rows as text, `version` changes with the content, so
    that a page replaces exactly the rows that changed. `step` or `event` is the number of what the row tells.
    `body_part` names the whole of a `body` that is only its beginning, else it is "".
    `rule` is the policy behind the gate's last word on the call.
    """

    key: str
    order: str
    version: str
    at: dt.datetime
    icon: str
    tone: Tone
    sentence: str
    step: int | None = None
    event: int | None = None
    target: str = ""
    body: str = ""
    body_part: str = ""
    reason: str = ""
    rule: Rule | None = None
    error: str = ""
    open: bool = False
    blocks: tuple[Block, ...] = ()
    pauses: tuple[Pause, ...] = ()
    notes: tuple[Note, ...] = ()
    child: Child | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A window of a run's timeline: `seq` is the run's event counter as of the look; `earlier` is the number of
    the first step shown if there are more before it, else None."""

    rows: tuple[Row, ...]
    seq: int
    earlier: int | None
