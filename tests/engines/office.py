"""Somebody who works with an installation from a process of their own: starts runs and answers them, and may die of it.

`python -m tests.engines.office` reads one JSON line per wish and answers each with one. It drives nothing, as a page
of `manage.py web` or a command does not: whatever it wakes, a worker elsewhere has to hear of.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.mcp.bindings import ROOT


@dataclass
class Office:
    """The test's end of it."""

    process: subprocess.Popen[str]

    @classmethod
    def open(cls, environment: dict[str, str]) -> Office:
        return cls(
            subprocess.Popen(
                [sys.executable, "-m", "tests.engines.office"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )

    def ask(self, wish: str, **values: Any) -> Any:
        """Have a wish fulfilled; gives what came of it, None if the process died of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"wish": wish, **values}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(60)
            return None
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["done"]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


# --- inside ----------------------------------------------------------------------------------------------------------


def people(playground: str) -> None:
    """Alice, the shared servers, and agents that do one thing each."""
    from runs.binding import identity_of
    from runs.models import Account, Agent, Role, Server
    from tests.mcp.bindings import LEGACY
    from tests.people import person

    account = Account.objects.create(name="Acme", slug="acme")
    person("alice", account, Role.OPERATOR)
    for name, fields in (("modern", {}), ("legacy", {"negotiated": LEGACY})):
        server = Server(account=account, name=name, transport="http", url=playground, trusted=True, **fields)
        server.identity = identity_of(server)
        server.save()
    question = {"question": "Which?", "header": "Pick", "options": [{"label": "one"}, {"label": "two"}]}
    haul = {"until": "{{ metadata.until }}", "tag": "{{ metadata.tag }}"}
    playbooks: dict[str, list[dict[str, Any]]] = {
        "asks": [{"ask": {"questions": [question]}, "as": "a"}, {"finish": "asked"}],
        "sleeps": [{"sleep": 0.5}, {"finish": "rested"}],
        "says": [{"say": "one"}, {"say": "two"}, {"say": "three"}, {"finish": "said"}],
        "hauls": [{"call": "modern:haul", "args": haul, "as": "r"}, {"finish": "{{ r.status }}"}],
        "is asked": [
            {"call": "legacy:ask_in_turn", "args": {"times": 1, "tag": "held"}, "as": "r"},
            {"finish": "{{ r.status }}"},
        ],
    }
    for name, steps in playbooks.items():
        agent = Agent.objects.create(account=account, name=name, definition={"steps": steps})
        agent.servers.set(Server.objects.all())


def start(agent: str, metadata: dict[str, str] | None = None) -> int:
    from runs.control import Submission, create_run
    from runs.models import Agent
    from runs.run_states import HumanInput

    submission = Submission(
        message="go", mode="autonomous", human_input=HumanInput.MANAGED, metadata=metadata or {}
    )
    return create_run(Agent.objects.get(name=agent), submission).pk


def start_unheard(agent: str) -> int:
    """A run whose wake no engine was told of."""
    from runs import engines

    usual, _ = engines.database.current().engine, engines.use(None)
    try:
        return start(agent)
    finally:
        engines.use(usual)


def answer(run: int) -> str:
    """Decide what the run waits for; gives the status of the decided pause."""
    from approvals import decisions
    from runs.access import actor_for
    from runs.models import Round, User

    round_ = Round.objects.filter(run=run).pending().get()
    responses = {key: _choice(round_.kind) for key in round_.requests}
    actor = actor_for(User.objects.get(username="alice"))
    decided = decisions.decide(actor, round_.pk, responses, idempotency_key=f"key {round_.pk}", via="api")
    return str(decided.status)


def _choice(kind: str) -> dict[str, Any]:
    content = {
        "question": {"selected": [1]},
        "outcome": {"decision": "happened"},
        "elicitation": {"name": "Ann"},
    }
    return {"action": "accept", "content": content[kind]}


def answer_and_undo(run: int) -> str:
    """Decide, and let the transaction fail after all."""
    from django.db import transaction

    with transaction.atomic():
        decided = answer(run)
        transaction.set_rollback(True)
    return decided


def answer_and_die(run: int) -> None:
    """Decide, and be gone at the moment of the commit."""
    from django.db import transaction

    with transaction.atomic():
        answer(run)
        transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))


WISHES: dict[str, Callable[..., Any]] = {
    wish.__name__: wish for wish in (people, start, start_unheard, answer, answer_and_undo, answer_and_die)
}


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    django.setup()
    from django.db import connection

    for line in sys.stdin:
        values = json.loads(line)
        try:
            done = {"done": WISHES[values.pop("wish")](**values)}
        except Exception as error:  # told to the test, which fails with it
            done = {"error": repr(error)}
        connection.close()
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
