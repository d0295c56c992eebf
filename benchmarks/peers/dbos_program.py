"""The tiny run with one pause as a DBOS workflow: ask (a step), `recv` the answer, say the next line (a step).

`dbos_program.py URL POLL` with the system database's URL and the seconds between two looks for messages, where 0 leaves
the default. On PostgreSQL the answers come from a process of their own, as they come from a web process in ours.

`dbos_program.py URL POLL wakes` lets no workflow wait: each wake of the run, so its start and its answer, is a workflow
of its own in a queue that is looked into every POLL seconds. A run that waits is then no thread and no memory.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID
from pace import ENDED, GOES_ON, LINE, WAITS, Moments, follow, latency, serve, throughput

TOPIC, ANSWERED, WAKES = "answer", "goes_on", "wakes"
Act = Callable[[str], object]
moments = Moments()


@DBOS.step()
def ask(question: str) -> str:
    return question


@DBOS.step()
def say(answer: str) -> str:
    return f"Thank you. I go on with {answer}."


@DBOS.workflow()
def tiny(run: str) -> str:
    ask("Which segment?")
    moments.note(WAITS, run)
    answer = DBOS.recv(TOPIC, timeout_seconds=3600)
    moments.note(GOES_ON, run)
    say(answer)
    moments.note(LINE, run)
    return "Done."


@DBOS.workflow()
def asks(run: str) -> None:
    ask("Which segment?")
    moments.note(WAITS, run)


@DBOS.workflow(name=ANSWERED)
def goes_on(run: str, answer: str) -> str:
    moments.note(GOES_ON, run)
    say(answer)
    moments.note(LINE, run)
    moments.note(ENDED, run)  # that this workflow has ended is stored a little later
    return "Done."


def start() -> str:
    run = uuid.uuid4().hex
    with SetWorkflowID(run):
        handle: Any = DBOS.start_workflow(tiny, run)
    handle.future.add_done_callback(lambda _: moments.note(ENDED, run))
    return run


class InThisProcess:
    """Answers from the executor's own process."""

    pid = None

    def __init__(self, act: Act) -> None:
        self._act = act

    def answer(self, run: str) -> tuple[float, float]:
        called = time.monotonic()
        self._act(run)
        return called, time.monotonic()

    tell = answer


class Elsewhere:
    """Answers from a process of their own: `dbos_program.py answers URL HOW` reads runs and writes when it answered."""

    def __init__(self, url: str, how: str) -> None:
        command = [sys.executable, __file__, "answers", url, how]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self._answered, self._talking = Moments(), threading.Lock()
        threading.Thread(target=follow, args=(self._process.stdout, self._answered), daemon=True).start()

    def tell(self, run: str) -> None:
        with self._talking:
            print(run, file=self._process.stdin, flush=True)

    def answer(self, run: str) -> tuple[float, float]:
        self.tell(run)
        seen = self._answered.until(run, "committed")
        return seen["called"], seen["committed"]


def answers(url: str, how: str) -> None:
    client = DBOSClient(system_database_url=url)

    def send(run: str) -> None:
        client.send(run, "enterprise", TOPIC)

    def wake(run: str) -> None:
        client.enqueue({"queue_name": WAKES, "workflow_name": ANSWERED}, run, "enterprise")

    act = wake if how == WAKES else send
    for line in sys.stdin:
        run, called = line.strip(), time.monotonic()
        act(run)
        committed = time.monotonic()
        print(f"called\t{run}\t{called:.6f}\ncommitted\t{run}\t{committed:.6f}", flush=True)


def main(url: str, poll: float, how: str) -> None:
    config: dict[str, Any] = {"name": "tiny", "system_database_url": url, "log_level": "ERROR"}
    if poll:
        config["notification_listener_polling_interval_sec"] = poll
    DBOS(config=config)
    DBOS.launch()
    begin, act = _by_wakes(poll) if how == WAKES else (start, _send)
    people = InThisProcess(act) if url.startswith("sqlite") else Elsewhere(url, how)
    serve(
        {
            "latency": lambda count, jitter: latency(count, begin, people.answer, moments, jitter=jitter),
            "throughput": lambda count: throughput(count, begin, people.tell, moments, helper=people.pid),
        }
    )


def _send(run: str) -> None:
    DBOS.send(run, "enterprise", TOPIC)


def _by_wakes(poll: float) -> tuple[Callable[[], str], Act]:
    """How a run is started, and answered from this process, when each wake is a workflow."""
    queue = DBOS.register_queue(WAKES, polling_interval_sec=poll)

    def begin() -> str:
        run = uuid.uuid4().hex
        queue.enqueue(asks, run)
        return run

    return begin, lambda run: queue.enqueue(goes_on, run, "enterprise")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["answers", url, how]:
            answers(url, how)
        case [url, poll, *how]:
            main(url, float(poll), *how or ["waits"])
