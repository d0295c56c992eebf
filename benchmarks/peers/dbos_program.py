"""The tiny run with one pause as a DBOS workflow: ask (a step), `recv` the answer, say the next line (a step).

`dbos_program.py URL POLL` with the system database's URL and the seconds between two looks for messages, where 0 leaves
the default. On PostgreSQL the answers come from a process of their own, as they come from a web process in ours.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID
from pace import ENDED, GOES_ON, LINE, WAITS, Moments, follow, latency, serve, throughput

TOPIC = "answer"
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


def start() -> str:
    run = uuid.uuid4().hex
    with SetWorkflowID(run):
        handle: Any = DBOS.start_workflow(tiny, run)
    handle.future.add_done_callback(lambda _: moments.note(ENDED, run))
    return run


class InThisProcess:
    """Answers from the executor's own process."""

    pid = None

    def answer(self, run: str) -> tuple[float, float]:
        called = time.monotonic()
        DBOS.send(run, "enterprise", TOPIC)
        return called, time.monotonic()

    tell = answer


class Elsewhere:
    """Answers from a process of their own: `dbos_program.py answers URL` reads runs and writes when it answered."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, __file__, "answers", url]
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


def answers(url: str) -> None:
    client = DBOSClient(system_database_url=url)
    for line in sys.stdin:
        run, called = line.strip(), time.monotonic()
        client.send(run, "enterprise", TOPIC)
        committed = time.monotonic()
        print(f"called\t{run}\t{called:.6f}\ncommitted\t{run}\t{committed:.6f}", flush=True)


def main(url: str, poll: float) -> None:
    config: dict[str, Any] = {"name": "tiny", "system_database_url": url, "log_level": "ERROR"}
    if poll:
        config["notification_listener_polling_interval_sec"] = poll
    DBOS(config=config)
    DBOS.launch()
    people = InThisProcess() if url.startswith("sqlite") else Elsewhere(url)
    serve(
        {
            "latency": lambda count, jitter: latency(count, start, people.answer, moments, jitter=jitter),
            "throughput": lambda count: throughput(count, start, people.tell, moments, helper=people.pid),
        }
    )


if __name__ == "__main__":
    if sys.argv[1] == "answers":
        answers(sys.argv[2])
    else:
        main(sys.argv[1], float(sys.argv[2]))
