"""A call whose worker is gone (A23, C35).

A reply that was journalled is simply read again (see `calls`); this is for calls without one.
"""

from __future__ import annotations

from runs import live_sessions, round_rows, turns
from runs.lease import Lease
from runs.local_tools import LOCAL
from runs.models import UNRESOLVED, Round
from runs.worker import call_journal, replay, session_rows

LOST = (
    "The server was asking on a live connection, and the worker that held it is gone. What it had done so far "
    "cannot be known from here: look at the server, then start the run again."
)
LOST_AT_WORK = (
    "{what} had a person's answer and was at work when the process behind it was lost. Nobody knows whether it took "
    "effect: look there before you start the run again."
)
LOST_HERE = (
    "The tool was asking inside the process that worked on this run, and that process is gone. What it had done so far "
    "cannot be known from here: look at what it changes, then start the run again."
)
INTERRUPTED = "The worker stopped while this call was under way, so nobody knows whether it took effect."


def recover(held: Lease, step_id: int, why: str | None = None) -> None:
    """Go on as far as can be proven: repeat what may be repeated, fail honestly where a session is lost, else ask.

    `why` is a sentence that says what was lost, if more is known than that the worker is gone.
    """
    here = call_journal.at(held, step_id)
    waiting = Round.objects.filter(step=here.step, held=True, status__in=UNRESOLVED)
    lost = list(waiting.select_related("run", "turn", "step"))
    if lost and live_sessions.may_repeat(here.call) and here.call.restarts < call_journal.MAX_RESTARTS:
        replay.begin(here, lost, why or INTERRUPTED)
    elif lost:
        message = why or _lost(here, lost)
        for round_ in lost:
            round_rows.lose(round_, message)
        turns.lose(here.run, here.turn, message)
    else:
        call_journal.failed(held, step_id, why or INTERRUPTED, unknown=True)


def _lost(here: call_journal.Place, lost: list[Round]) -> str:
    """What was lost, in a sentence: somebody who asked, or somebody who was at work with the answer."""
    local = here.call.server_name == LOCAL
    if all(round_.status not in session_rows.WAITING for round_ in lost):
        return LOST_AT_WORK.format(what="The tool" if local else "The server")
    return LOST_HERE if local else LOST
