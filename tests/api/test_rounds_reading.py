"""What the API shows of pauses: the list with its filters and cursor, and one in full."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from approvals.decisions import decide
from runs.access import actor_for
from runs.models import Account, Round, Run, Server, User
from runs.tool_rows import store_tools
from tests.api.conftest import ALLOW, Caller, fields_of
from tests.services.test_renewals import allow, asked, mail

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


def ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["data"]]


def test_the_list_holds_what_waits_newest_first(
    calling: Calling, vera: User, alice: User, make_round: MakeRound
) -> None:
    first, second, decided = make_round(), make_round("question"), make_round()
    decide(actor_for(alice), decided.pk, ALLOW, idempotency_key="k")

    assert ids(calling(vera).get("rounds/")) == [second.pk, first.pk]
    assert ids(calling(vera).get("rounds/", status="all")) == [decided.pk, second.pk, first.pk]


def test_the_list_filters_by_kind_and_by_run(calling: Calling, alice: User, make_round: MakeRound) -> None:
    approval, question = make_round(), make_round("question")

    assert ids(calling(alice).get("rounds/", kind="question")) == [question.pk]
    assert ids(calling(alice).get("rounds/", run=approval.run_id)) == [approval.pk]
    assert ids(calling(alice).get("rounds/", run=approval.run_id, kind="question")) == []


def test_the_list_filters_by_agent_end_user_and_server(
    calling: Calling, alice: User, make_round: MakeRound, make_run: Callable[..., Run]
) -> None:
    approval, theirs = make_round(), make_round("question", run=make_run(user_id="cust_123"))
    caller = calling(alice)

    assert ids(caller.get("rounds/", user_id="cust_123")) == [theirs.pk]
    assert ids(caller.get("rounds/", server="desk")) == [approval.pk]
    assert ids(caller.get("rounds/", agent_id=approval.run.agent_id)) == [theirs.pk, approval.pk]
    assert ids(caller.get("rounds/", agent_id=approval.run.agent_id + 1)) == []


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "riddle"},
        {"kind": ""},
        {"status": "open"},
        {"run": "x"},
        {"run": 10**20},
        {"limit": 0},
        {"limit": 101},
        {"limit": "x"},
        {"starting_after": "nothing"},
    ],
    ids=str,
)
def test_a_query_that_cannot_be_meant_is_refused_by_name(
    calling: Calling, alice: User, query: dict[str, Any]
) -> None:
    assert fields_of(calling(alice).get("rounds/", **query)) == [[next(iter(query))]]


def test_the_cursor_leads_through_everything_even_when_its_pause_is_decided_meanwhile(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    made = [make_round() for _ in range(5)]
    Round.objects.update(created_at=timezone.now())  # all at one moment: the id has to break the tie
    caller, seen, after = calling(alice), [], {}
    while True:
        page = caller.get("rounds/", limit=2, **after).json()
        seen += [row["id"] for row in page["data"]]
        if not page["has_more"]:
            break
        decide(actor_for(alice), seen[-1], ALLOW, idempotency_key="k")
        after = {"starting_after": page["next_starting_after"]}

    assert page["next_starting_after"] is None
    assert sorted(seen) == sorted(round_.pk for round_ in made)


def test_a_longer_list_costs_no_more_queries(
    calling: Calling, alice: User, make_round: MakeRound, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    caller = calling(alice)
    for _ in range(4):
        decide(actor_for(alice), make_round().pk, ALLOW, idempotency_key="k")
    with django_assert_num_queries(4):  # session, user, membership, rounds
        assert len(ids(caller.get("rounds/", status="all"))) == 4


def test_another_accounts_pauses_are_not_there(calling: Calling, otto: User, make_round: MakeRound) -> None:
    hidden = make_round()

    assert ids(calling(otto).get("rounds/", status="all")) == []
    assert calling(otto).get(f"rounds/{hidden.pk}").status_code == 404
    assert fields_of(calling(otto).get("rounds/", starting_after=hidden.pk)) == [["starting_after"]]


def test_a_pause_in_full_has_what_an_answer_must_carry(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()

    shown = calling(alice).get(f"rounds/{pending.pk}").json()

    assert (shown["kind"], shown["status"], shown["outcome"]) == ("approval", "pending", None)
    assert shown["operation"] == "desk:send_email"
    assert shown["requests"] == pending.requests
    assert shown["shown_digest"] == pending.shown_digest
    assert shown["context"] == pending.context
    assert (shown["decided_by"], shown["decided_via"], shown["decided_at"]) == (None, None, None)


@pytest.mark.parametrize("kind", ["approval", "elicitation", "question", "plan", "outcome"])
def test_every_kind_is_shown_with_the_facts_of_its_card(
    calling: Calling, alice: User, make_round: MakeRound, kind: str
) -> None:
    pending = make_round(kind)

    shown = calling(alice).get(f"rounds/{pending.pk}").json()

    assert shown["context"] == pending.context
    assert shown["requests"].keys() == pending.requests.keys()


def test_a_decided_pause_says_who_decided_when_and_how(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    decided = decide(actor_for(alice), make_round().pk, ALLOW, idempotency_key="k", via="page")

    shown = calling(alice).get(f"rounds/{decided.pk}").json()

    assert (shown["outcome"], shown["decided_by"], shown["decided_via"]) == ("allowed", "alice", "page")
    assert shown["responses"] == ALLOW
    assert decided.response_validated_at is not None
    assert shown["decided_at"] == f"{decided.response_validated_at:%Y-%m-%dT%H:%M:%S.%fZ}"


def test_leases_protocol_states_and_what_is_not_on_the_card_never_leave(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    request = {
        "request_key": "a",
        "mode": "url",
        "message": "Sign in",
        "url": "https://example.com/",
        "meta": {"trace": "INSIDE-meta"},
    }
    pending = make_round("elicitation", requests={"a": request}, internal="INSIDE-context")
    Round.objects.filter(pk=pending.pk).update(
        lease_owner="INSIDE-owner",
        lease_token="INSIDE-token",
        request_state="INSIDE-state",
        native_resume_token="INSIDE-resume",
        harness_session_id="INSIDE-session",
    )

    for response in (calling(alice).get("rounds/"), calling(alice).get(f"rounds/{pending.pk}")):
        assert pending.pk in response.content.decode()
        assert "INSIDE" not in response.content.decode()
        assert "lease" not in response.content.decode()


def test_half_a_character_in_a_servers_text_does_not_break_the_answer(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round(title="half \ud83d of one")

    response = calling(alice).get(f"rounds/{pending.pk}")

    assert response.status_code == 200
    assert json.loads(response.content)["context"]["title"] == "half \ud83d of one"


def test_an_approval_that_asks_because_of_a_change_says_what_has_changed(
    calling: Calling,
    alice: User,
    desk: Server,
    make_round: MakeRound,
    make_run: Callable[..., Run],
    account: Account,
) -> None:
    store_tools(desk, [mail(100)])
    allow(account, "desk:send_email")
    store_tools(desk, [mail(10_000)])
    pending, plain = asked(make_round, make_run), make_round()

    shown = calling(alice).get(f"rounds/{pending.pk}").json()

    assert [one["sentence"] for one in shown["changes"]["differences"]] == [
        "Argument amount: maximum 100 → 10000."
    ]
    assert shown["changes"]["tool"] == "desk:send_email"
    assert shown["changes"]["differences"][0]["risk_relevant"] is True
    assert calling(alice).get(f"rounds/{plain.pk}").json()["changes"] is None
