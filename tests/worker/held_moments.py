"""Where a worker process of a test can be stopped short: a hook around `runs.db.write`, for that process alone.

`M3_TEST_HOLD="before result"` holds every call right before the transaction of that moment, `after` right after its
commit; what else the process does goes on, until it is killed. Each call that is held becomes a line (the id of its
run) of the file that `M3_TEST_HELD` names. With `M3_TEST_FREEZE=1` the first one stops the whole process instead, with
SIGSTOP on itself; SIGCONT lets it go on from there. A write that is refused, because another worker has the run,
becomes a line `refused`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

MOMENTS = {
    "permitted": "a permission is stored",
    "sent": "the intent to send the call is stored",
    "session": "the session in which the call will leave is stored",
    "question": "the server's question is stored",
    "answer": "a person's answer is on its way",
    "retry": "the intent to send the call again, with the answers, is stored",
    "task": "the id of the server's task is stored",
    "result": "the server's result is stored",
}
"""What the transaction of each moment makes true."""

_BOUNDARIES = {
    "gate": "permitted",
    "remember": "session",
    "open_held": "question",
    "start_held_delivery": "answer",
    "updating": "answer",
    "asked": "question",
    "apply_answers": "answer",
}
_RESULT_TYPES = {"input_required": "question", "task": "task"}


def install() -> None:
    """Read the environment and hold what it says, if it says so."""
    wanted = os.environ.get("M3_TEST_HOLD")
    if wanted is None:
        return
    when, _, moment = wanted.partition(" ")
    if when not in ("before", "after") or moment not in MOMENTS:
        raise ValueError(f"no moment to hold a worker at: {wanted!r}")

    from runs import db
    from runs.errors import LeaseLost

    commit = db.write
    sent: set[int] = set()

    async def write(boundary: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        named, given = boundary, args
        if isinstance(boundary, partial):  # so is what would be kept in hand while the database is away
            named, given = boundary.func, (*boundary.args, *args)
        now = _moment(getattr(named, "__name__", ""), given, sent) == moment
        if now and when == "before":
            await _hold(given[0].run_id)
        try:
            done = await commit(boundary, *args, **kwargs)
        except LeaseLost:
            _note("refused")
            raise
        if now and when == "after":
            await _hold(given[0].run_id)
        return done

    db.write = write  # type: ignore[assignment]


def _moment(boundary: str, args: tuple[Any, ...], sent: set[int]) -> str | None:
    """What a transaction with these arguments makes true; `sent` are the steps that were sent by this process."""
    if boundary == "received":
        return _RESULT_TYPES.get(args[2].get("resultType"), "result")
    if boundary == "sent":
        again = args[1] in sent
        sent.add(args[1])
        return "retry" if again else "sent"
    return _BOUNDARIES.get(boundary)


async def _hold(run_id: int) -> None:
    _note(str(run_id))
    if os.environ.get("M3_TEST_FREEZE"):
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        await asyncio.Event().wait()


def _note(line: str) -> None:
    with open(os.environ["M3_TEST_HELD"], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
