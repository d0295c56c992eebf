"""The account's events: newest first, in pages that neither repeat nor miss one, narrowed by what they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Event, Round, Run, User
from tests.api.conftest import ALLOW, Caller, fields_of

Calling = Callable[[User], Caller]


def types(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [row["type"] for row in response.json()["data"]]


def test_every_event_of_the_account_is_listed_newest_first_with_its_run(
    calling: Calling, vera: User, alice: User, make_round: Callable[..., Round], make_run: Callable[..., Run]
) -> None:
    pending, other = make_round(), make_run(user_id="cust_123")
    calling(alice).respond(pending.pk, ALLOW)

    page = calling(vera).get("events/", limit=100).json()
    assert [row["id"] for row in page["data"]] == list(
        Event.objects.order_by("-pk").values_list("pk", flat=True)
    )
    assert {(row["run_id"], row["user_id"]) for row in page["data"]} == {
        (pending.run_id, None),
        (other.pk, "cust_123"),
    }
    decided = next(row for row in page["data"] if row["type"] == "approval.response")
    assert (decided["actor"], decided["payload"]["outcome"]) == ("alice", "allowed")


def test_pages_neither_repeat_nor_miss_an_event(
    calling: Calling, vera: User, make_round: Callable[..., Round]
) -> None:
    for _ in range(3):
        make_round()
    caller, seen, query = calling(vera), [], {"limit": 2}
    for _ in range(Event.objects.count()):
        page = caller.get("events/", **query).json()
        seen += [row["id"] for row in page["data"]]
        make_round()  # what happens meanwhile comes before the first page
        if not page["has_more"]:
            break
        query["starting_after"] = page["next_starting_after"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) >= 6


def test_the_list_is_narrowed_by_run_type_agent_and_end_user(
    calling: Calling, vera: User, make_round: Callable[..., Round], make_run: Callable[..., Run]
) -> None:
    pending, other = make_round(), make_run(user_id="cust_123")
    caller = calling(vera)

    assert set(types(caller.get("events/", run=other.pk))) == set(
        types(caller.get("events/", user_id="cust_123"))
    )
    [asked] = caller.get("events/", type="approval.request").json()["data"]
    assert asked["run_id"] == pending.run_id
    assert types(caller.get("events/", agent_id=other.agent_id + 1)) == []
    assert types(caller.get("events/", user_id="nobody")) == []


@pytest.mark.parametrize("query", [{"run": "x"}, {"type": ""}, {"limit": 0}, {"starting_after": -1}], ids=str)
def test_a_query_that_means_nothing_is_refused(calling: Calling, vera: User, query: dict[str, Any]) -> None:
    assert fields_of(calling(vera).get("events/", **query)) == [list(query)]


def test_another_account_sees_none_of_it(
    calling: Calling, otto: User, make_round: Callable[..., Round]
) -> None:
    make_round()
    assert types(calling(otto).get("events/")) == []


@pytest.mark.parametrize(
    ("path", "index"), [("events/", "event_of_account"), ("rounds/", "round_of_account")]
)
def test_the_history_is_read_along_an_index(
    calling: Calling, vera: User, make_round: Callable[..., Round], path: str, index: str
) -> None:
    """However long it grows, a page is as quick; so the plan, and not the present table, is what is looked at."""
    make_round()
    caller = calling(vera)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert caller.get(path, status="all").status_code == 200
    [listing] = [
        query["sql"] for query in queries if "ORDER BY" in query["sql"] and "LIMIT 21" in query["sql"]
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {'' if connection.vendor == 'postgresql' else 'QUERY PLAN '}{listing}")
        plan = str(cursor.fetchall())
    assert index in plan
