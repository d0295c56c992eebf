"""What a tiny run asks of the database: whoever adds a statement or a commit to every run says so here.

On PostgreSQL a little more is asked: rows are locked, the server's clock is read, the engine's job is stored.
"""

from __future__ import annotations

import pytest
from django.db import connection

from benchmarks.engine_program import People
from benchmarks.prepare import PLAYBOOKS
from benchmarks.run_costs import costs
from runs.models import Account, Agent, Run, User

STATEMENTS = {
    "start": 7,
    "advance to the question": 14,
    "answer": 9,
    "advance to the end": 17,
}
MORE_ON_POSTGRES = 4


@pytest.mark.django_db(transaction=True)
def test_a_tiny_run_takes_four_commits_and_no_more_statements_than_it_did(
    account: Account, alice: User
) -> None:
    agent = Agent.objects.create(account=account, name="asks", definition=PLAYBOOKS["asks"])
    parts = costs(People(agent.pk), 1)["parts"]
    assert set(Run.objects.values_list("outcome", flat=True)) == {"completed"}
    assert {name: part["commits"] for name, part in parts.items()} == dict.fromkeys(STATEMENTS, 1)
    more = MORE_ON_POSTGRES if connection.vendor == "postgresql" else 0
    too_many = {
        name: part["statements"]
        for name, part in parts.items()
        if part["statements"] > STATEMENTS[name] + more
    }
    assert too_many == {}
