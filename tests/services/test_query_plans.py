"""With ten thousand runs that wait, what is asked all the time is answered from an index, on either database."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from approvals.inbox import MOST_ROWS, Filters, counts_for, listed, lists
from benchmarks.parked_rows import copy
from runs import access, events, hosts, lease
from runs.models import Round, Run, User
from runs.worker.deadlines import sweep

MANY = 10_000

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(make_round: Callable[..., Round]) -> Round:
    """One of the many, all of which are parked and a tenth of which have a deadline."""
    round_ = make_round("question")
    Run.objects.update(seen_seq=F("wake_seq"))
    copy(round_.run_id, MANY)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return round_


def plan(ask: Callable[[], object]) -> str:
    """What the database says of how it answers the queries in `ask`."""
    with CaptureQueriesContext(connection) as queries:
        ask()
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    told: list[str] = []
    for query in queries:
        if re.match(r'(SELECT|UPDATE) .*"runs_', query["sql"]):
            with connection.cursor() as cursor:
                cursor.execute(f"{explain} {query['sql']}")
                told += [str(row[-1]) for row in cursor.fetchall()]
    return "\n".join(told)


def indexes(told: str) -> set[str]:
    """Those that a plan uses."""
    return set(re.findall(r"(?:USING (?:COVERING )?INDEX|Scan (?:Backward )?(?:using|on)) (\w+)", told))


def scanned(told: str) -> list[str]:
    """The tables with a row or more per run that a plan reads from one end to the other."""
    return re.findall(r"(?:SCAN|Seq Scan on) runs_(?:run|turn|step|round|event)\b.*", told)


def test_a_sweep_and_a_look_after_hosts_read_what_is_due_and_nothing_else(waiting: Round) -> None:
    told = plan(sweep)
    assert {"run_due", "run_sleeping", "round_deadlines", "round_going_on"} <= indexes(told), told
    assert scanned(told) == []
    assert "run_pinned" in indexes(plan(hosts.let_go))


def test_a_claim_finds_its_run_by_its_key(waiting: Round) -> None:
    lease.wake(waiting.run_id)
    told = plan(lambda: lease.claim(waiting.run_id, "one"))
    assert told
    assert scanned(told) == []


def test_the_list_is_read_in_its_order_and_no_further_than_a_page(
    waiting: Round, alice: User, acting: Callable[[User], access.Actor]
) -> None:
    actor = acting(alice)
    told = plan(lambda: list(listed(actor, Filters()).for_cards()[:MOST_ROWS]))
    assert "round_urgency" in indexes(told), told
    assert not re.search(r"FOR ORDER BY|Sort", told), told
    assert scanned(told) == []


def test_a_hint_costs_an_open_page_a_count_on_an_index_and_one_row(
    waiting: Round, alice: User, acting: Callable[[User], access.Actor]
) -> None:
    actor = acting(alice)
    if (
        connection.vendor == "postgresql"
    ):  # all rows here wait, and nobody vacuums inside a test's transaction
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
    for count in (lambda: counts_for(actor, Filters()), lambda: events.PENDING(account=actor.account.pk)):
        told = plan(count)
        assert indexes(told) == {"round_waiting"}, told
        assert "TEMP B-TREE" not in told
    told = plan(lambda: lists(actor, Filters(), waiting.pk))
    assert scanned(told) == []
    assert "round_urgency" not in indexes(told), told
