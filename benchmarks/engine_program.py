"""The tiny run with one pause on the product's own engine, as a program that `programs` drives.

`python -m benchmarks.engine_program AGENT` reads where its data are from the environment, as the product does. People
answer through `approvals.decisions`, the function behind every page and route.

On SQLite the worker is in this process, as under `manage.py up`. On PostgreSQL it is `manage.py worker` in a process of
its own (`python -m benchmarks.engine_program worker`), which relays the moments of its runs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from benchmarks.peers.pace import (
    ENDED,
    GOES_ON,
    LINE,
    WAITS,
    Moments,
    Relay,
    follow,
    latency,
    serve,
    throughput,
)

P = ParamSpec("P")
T = TypeVar("T")

_MOMENTS = {"question.request": WAITS, "agent.say": LINE, "run.completed": ENDED}
"""Events of the run's history, each of which is told of once it is committed."""

ANSWER = {"q0": {"action": "accept", "content": {"selected": [0]}}}


def watch(note: Callable[[str, str], None]) -> None:
    """Note the moments of every run that this process works on."""
    from django.db import transaction

    from runs import events

    record = events.record

    def noted(run: Any, type_: str, *args: Any, **kwargs: Any) -> Any:
        if type_ == "agent.say":
            note(GOES_ON, str(run.pk))
        event = record(run, type_, *args, **kwargs)
        if type_ in _MOMENTS:
            transaction.on_commit(lambda: note(_MOMENTS[type_], str(run.pk)))
        return event

    events.record = noted


class People:
    """Start runs of one agent and answer what they ask, from one thread."""

    def __init__(self, agent_id: int) -> None:
        from runs import access
        from runs.models import Agent, User

        self.agent = Agent.objects.select_related("account").get(pk=agent_id)
        self.actor = access.actor_for(User.objects.get(memberships__account=self.agent.account))

    def start(self) -> str:
        from runs.control import Submission, create_run
        from runs.run_states import HumanInput

        return str(create_run(self.agent, Submission(message="Go on.", human_input=HumanInput.MANAGED)).pk)

    def tell(self, run: str) -> None:
        """Answer the run's question."""
        self._decide(self._asked(run))

    def answer(self, run: str) -> tuple[float, float]:
        """Answer the run's question; gives when the call began and when its commit was done."""
        from django.db import transaction

        round_id = self._asked(run)
        called, committed = time.monotonic(), []
        with transaction.atomic():  # only so that the commit can be noted
            transaction.on_commit(lambda: committed.append(time.monotonic()))
            self._decide(round_id)
        return called, committed[0]

    def _asked(self, run: str) -> str:
        """Who sees a card knows this; so it is to cost next to nothing."""
        from runs.models import Round
        from runs.round_states import RoundStatus
        from runs.row_lookup import row

        asked = row(Round, "status", run_id=int(run), status=RoundStatus.PENDING.value)
        return str(asked.pk) if asked else ""

    def _decide(self, round_id: str) -> None:
        from approvals import decisions

        decisions.decide(self.actor, round_id, ANSWER, idempotency_key=uuid.uuid4().hex, via="api")


def requested(act: Callable[P, T]) -> Callable[P, T]:
    """As a request does it, which gives its connection back at the end."""
    from django.db import close_old_connections

    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return act(*args, **kwargs)
        finally:
            close_old_connections()

    return asked


def main(agent_id: int) -> None:
    from django.db import connection

    moments, people, worker = Moments(), People(agent_id), None
    if connection.vendor == "sqlite":
        watch(moments.note)
        _serve_engine()
    else:
        worker = _start_worker(moments)
    pid = worker.pid if worker else None
    serve(
        {
            "latency": lambda count, jitter: latency(
                count, people.start, people.answer, moments, jitter=jitter
            ),
            "throughput": lambda count: throughput(
                count, requested(people.start), requested(people.tell), moments, helper=pid
            ),
        }
    )
    if worker:
        worker.terminate()
        worker.wait()


def _serve_engine() -> None:
    from approvals.gate import PolicyGate
    from runs.engines.in_process import InProcess

    engine = InProcess(PolicyGate())
    engine.lock()
    threading.Thread(target=lambda: asyncio.run(engine.serve()), daemon=True).start()
    while engine.loop is None:
        time.sleep(0.01)


def _start_worker(moments: Moments) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.engine_program", "worker"]
    worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=follow, args=(worker.stdout, moments), daemon=True).start()
    return worker


def work() -> None:
    """`manage.py worker`, whose runs' moments become lines of our output."""
    from django.core.management import call_command

    watch(Relay(os.fdopen(os.dup(1), "w")).note)
    os.dup2(2, 1)
    call_command("worker")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    import django

    django.setup()
    match sys.argv[1:]:
        case ["worker"]:
            work()
        case [agent, "costs"]:
            from benchmarks.run_costs import costs

            serve({"costs": lambda count: costs(People(int(agent)), count)})
        case [agent]:
            main(int(agent))
