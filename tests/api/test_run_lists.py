"""Which runs a list holds, and in which order (m8tes-http 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import turns
from runs.models import Account, Agent, Round, Run, Task, User
from runs.run_states import Outcome
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


def listed(caller: Caller, **query: Any) -> list[int]:
    return [run["id"] for run in caller.get("runs/", **query).json()["data"]]


def ended(run: Run, outcome: Outcome) -> int:
    turns.finish(run, run.turns.get(), outcome)
    return run.pk


def test_a_list_is_of_one_scope_unless_all_are_asked_for(
    calling: Calling, vera: User, make_run: MakeRun
) -> None:
    nobodys, anns, bens = (make_run(user_id=user_id).pk for user_id in (None, "ann", "ben"))
    caller = calling(vera)

    assert listed(caller) == [nobodys]
    assert listed(caller, user_id="ann") == [anns]
    assert listed(caller, user_id="nobody") == []
    assert listed(caller, include_end_user_runs="true") == [bens, anns, nobodys]
    assert listed(caller, include_end_user_runs="false") == [nobodys]
    assert listed(caller, include_end_user_runs="true", user_id="ben") == [bens]


def test_every_status_is_found_by_its_word(
    calling: Calling, vera: User, make_run: MakeRun, make_round: MakeRound
) -> None:
    made = {
        "running": [make_run().pk],
        "awaiting_approval": [make_round().run_id],
        "completed": [ended(make_run(), Outcome.COMPLETED)],
        "failed": [
            ended(make_run(), outcome) for outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED)
        ],
        "cancelled": [ended(make_run(), Outcome.CANCELLED)],
        "closed": [],
        "paused": [],
        "archived": [],
    }
    caller = calling(vera)

    for word, runs in made.items():
        assert listed(caller, status=word) == runs[::-1], word
        assert {run["status"] for run in caller.get("runs/", status=word).json()["data"]} <= {word}


def test_runs_are_found_by_agent_and_task(
    calling: Calling, vera: User, agent: Agent, make_run: MakeRun, account: Account
) -> None:
    other = Agent.objects.create(account=account, name="Other", definition={"steps": []})
    task = Task.objects.create(account=account, agent=agent, instructions="Go")
    with_task, without = make_run(task=task).pk, make_run().pk
    caller = calling(vera)

    assert listed(caller, teammate_id=agent.pk) == [without, with_task]
    assert listed(caller, agent_id=other.pk) == []
    assert listed(caller, task_id=task.pk) == [with_task]
    assert listed(caller, task_id=task.pk + 1) == []


def test_by_priority_those_that_wait_for_a_person_come_first_on_every_page(
    calling: Calling, vera: User, make_run: MakeRun, make_round: MakeRound
) -> None:
    waiting = [make_round().run_id for _ in range(2)]
    working = [make_run().pk for _ in range(2)]
    caller = calling(vera)

    pages, after = [], {}
    for _ in range(4):
        page = caller.get("runs/", sort="priority", limit=1, **after).json()
        pages += [run["id"] for run in page["data"]]
        after = {"starting_after": page["next_starting_after"]}

    assert pages == waiting[::-1] + working[::-1]
    assert not page["has_more"]
    assert listed(caller, sort="created") == working[::-1] + waiting[::-1]
    assert caller.get("runs/", sort="priority", starting_after=10**6).status_code == 404


def test_nothing_is_archived_here(calling: Calling, vera: User, make_run: MakeRun) -> None:
    run, caller = make_run().pk, calling(vera)

    assert listed(caller, archived="only") == []
    assert listed(caller, archived="include") == listed(caller, archived="exclude") == [run]
    assert listed(caller, exclude_platform_runs="true") == [run]


def test_a_summary_leaves_out_what_may_be_long(calling: Calling, vera: User, make_run: MakeRun) -> None:
    make_run(metadata={"note": "x" * 1000})

    (full,) = calling(vera).get("runs/").json()["data"]
    (short,) = calling(vera).get("runs/", fields="summary").json()["data"]

    assert full.keys() - short.keys() == {"message", "output", "error", "tools", "metadata", "files"}
    assert short == {name: full[name] for name in short}


@pytest.mark.parametrize(
    "query",
    [
        {"status": "sleeping"},
        {"sort": "random"},
        {"archived": "yes"},
        {"include_end_user_runs": "1"},
        {"exclude_platform_runs": "True"},
        {"fields": "everything"},
        {"teammate_id": "x"},
        {"agent_id": str(10**30)},
        {"task_id": "-1"},
        {"user_id": ""},
        {"user_id": "\x00"},
        {"limit": "0"},
        {"limit": "101"},
        {"starting_after": "x"},
    ],
    ids=str,
)
def test_a_query_that_means_nothing_is_a_422_that_names_it(
    calling: Calling, vera: User, query: dict[str, str]
) -> None:
    assert fields_of(calling(vera).get("runs/", **query)) == [[*query]]


def test_a_longer_list_asks_the_database_no_more_often(
    calling: Calling, vera: User, make_run: MakeRun, account: Account, agent: Agent
) -> None:
    caller, counts = calling(vera), []
    for _ in range(2):
        for _ in range(3):
            task = Task.objects.create(account=account, agent=agent, instructions="Go", name="Weekly")
            make_run(task=task, user_id="ann")
        with CaptureQueriesContext(
            connection,
        ) as asked:
            caller.get("runs/", user_id="ann")
        counts.append(len(asked))

    assert counts[0] == counts[1]
