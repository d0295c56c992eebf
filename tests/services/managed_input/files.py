"""A store on a file of its own, with an execution in it."""

from __future__ import annotations

from pathlib import Path

from runs.control import Submission, create_run
from runs.database import file_connection
from runs.models import Account, Agent, Run
from runs.run_states import HumanInput


def execution_in(file: Path) -> str:
    """The id of a new execution in the database file, whose tables are there."""
    with file_connection(file):
        account, _ = Account.objects.get_or_create(name="There", slug="there")
        agent, _ = Agent.objects.get_or_create(
            account=account, name="Agent", defaults={"definition": {"steps": [{"say": "Hello."}]}}
        )
        run = create_run(agent, Submission(message="Go", human_input=HumanInput.MANAGED))
        return str(run.turns.get().pk)


def run_in(file: Path, execution_id: str) -> Run:
    with file_connection(file):
        return Run.objects.get(turns=execution_id)
