"""The reference's process, a store of ours of either kind, and executions for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from runs import database
from runs.control import Submission, create_run
from runs.managed_input import DjangoManagedInputStore, ManagedInputStore, SQLiteManagedInputStore
from runs.models import Account, Agent, Run
from runs.run_states import HumanInput, TurnStatus
from runs.turns import set_status
from tests.differential.both import Both
from tests.differential.sides import Ours, Reference, reference
from tests.requirements import peer_python

Executions = Callable[[], str]


@pytest.fixture(scope="session")
def peer() -> Iterator[Reference]:
    with reference(peer_python("sf_m3")) as process:
        yield process


@pytest.fixture
def both(peer: Reference, db: None) -> Both:
    """The reference beside our store on the installation's database."""
    return opened(Both(peer, Ours(lambda clock: DjangoManagedInputStore(clock=clock))))


@pytest.fixture
def executions(agent: Agent) -> Executions:
    """Makes an execution (a turn that is running) in the installation's database; returns its id."""
    return lambda: running_turn(agent)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite file of a program's own, with our tables in it."""
    path = tmp_path / "executions.sqlite"
    database.prepare_file(path)
    return path


@pytest.fixture
def both_on_file(peer: Reference, db: None, file: Path) -> Both:
    """The reference beside our store on a file of its own."""

    def new_store(clock: Callable[[], datetime]) -> ManagedInputStore:
        return SQLiteManagedInputStore(file, clock=clock)

    return opened(Both(peer, Ours(new_store)))


@pytest.fixture
def executions_on_file(file: Path) -> Executions:
    """Makes executions in the program's file."""

    def make() -> str:
        with database.file_connection(file):
            account, _ = Account.objects.get_or_create(name="Acme", slug="acme")
            agent, _ = Agent.objects.get_or_create(
                account=account, name="Program", definition={"steps": [{"say": "Hello."}]}
            )
            return running_turn(agent)

    return make


def opened(both: Both) -> Both:
    both.open()
    return both


def running_turn(agent: Agent) -> str:
    run: Run = create_run(agent, Submission(message="Book it", human_input=HumanInput.MANAGED))
    turn = run.turns.get()
    set_status(run, turn, TurnStatus.RUNNING_TURN)
    return str(turn.pk)
