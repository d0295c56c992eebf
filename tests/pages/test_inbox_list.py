"""The list of what waits: whose, in which order, filtered, counted, and as fragments for the live page."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from runs.models import Round, Run
from tests.pages.inbox_page import decide, text


def test_the_inbox_lists_every_pause_of_the_account(client_for: Any, alice: Any, make_round: Any) -> None:
    rounds = [make_round(kind) for kind in ("approval", "elicitation", "question", "plan", "outcome")]
    page = client_for(alice).get("/")
    assert page.status_code == 200
    for round_ in rounds:
        assert f'data-round="{round_.pk}"' in text(page)
        assert f'href="/rounds/{round_.pk}/"' in text(page)
    assert "(5) Inbox" in text(page)


def test_pauses_of_another_account_do_not_exist_here(client_for: Any, otto: Any, make_round: Any) -> None:
    round_ = make_round()
    client = client_for(otto)
    assert round_.pk not in text(client.get("/"))
    for path in ("", "card", "ending"):
        assert client.get(f"/rounds/{round_.pk}/{path}").status_code == 404
    assert f'data-round="{round_.pk}"' not in text(client.get(f"/rounds/{round_.pk}/row"))
    assert decide(client, round_, decision="allow").status_code == 404


def test_an_empty_inbox_says_what_will_appear(client_for: Any, alice: Any) -> None:
    page = text(client_for(alice).get("/"))
    assert "Nothing waits for you" in page
    assert "appears here by itself" in page


def test_nobody_signed_in_is_sent_to_the_login(client: Any) -> None:
    assert client.get("/").headers["Location"].startswith("/login?next=/")


def test_the_nearest_deadline_comes_first_and_then_the_oldest(
    client_for: Any, alice: Any, make_round: Any
) -> None:
    old, new, due = make_round("plan"), make_round("question"), make_round()
    Round.objects.filter(pk=old.pk).update(created_at=timezone.now() - dt.timedelta(hours=2))
    Round.objects.filter(pk=due.pk).update(deadline=timezone.now() + dt.timedelta(minutes=3))
    page = text(client_for(alice).get("/rounds/"))
    places = [page.index(f'data-round="{round_.pk}"') for round_ in (due, old, new)]
    assert places == sorted(places)
    assert "2 min left" in page
    assert 'class="due"' in page


def test_filters_narrow_the_list_and_the_counts_follow(
    client_for: Any, alice: Any, make_run: Any, make_round: Any
) -> None:
    run: Run = make_run(user_id="cust_1")
    mine, other = make_round(run=run), make_round("plan")
    client = client_for(alice)
    page = text(client.get("/?user=cust_1"))
    assert mine.pk in page
    assert other.pk not in page
    by_kind = text(client.get("/?kind=plan"))
    assert other.pk in by_kind
    assert f'href="/rounds/{other.pk}/?kind=plan"' in by_kind
    assert f'data-row data-round="{mine.pk}"' not in by_kind
    assert mine.pk in text(client.get("/?server=desk"))
    assert mine.pk in text(client.get(f"/?agent={run.agent_id}"))


@pytest.mark.parametrize("query", ["kind=nonsense", "agent=x", "agent=99999999999999999999"])
def test_a_filter_that_means_nothing_filters_nothing(
    query: str, client_for: Any, alice: Any, make_round: Any
) -> None:
    assert make_round().pk in text(client_for(alice).get(f"/?{query}"))


def test_a_filter_without_matches_says_so(client_for: Any, alice: Any, make_round: Any) -> None:
    make_round()
    assert "Nothing that waits matches these filters" in text(client_for(alice).get("/?user=nobody"))


def test_a_hint_is_answered_by_one_row_and_the_counts(client_for: Any, alice: Any, make_round: Any) -> None:
    waiting, decided = make_round(), make_round("plan")
    client = client_for(alice)
    update = text(client.get(f"/rounds/{waiting.pk}/row"))
    assert update.count("data-row") == 1
    assert 'id="inbox-head"' in update
    decide(client, decided, decision="approve")
    gone = text(client.get(f"/rounds/{decided.pk}/row"))
    assert "data-row" not in gone
    assert 'All <span class="n">1</span>' in gone


def test_what_a_server_says_is_never_markup(client_for: Any, alice: Any, make_round: Any) -> None:
    evil = "<script>alert(1)</script><a href='//evil.example'>x</a>"
    arguments = {evil: evil, "to": evil}
    round_ = make_round(title=evil, description=evil, arguments=arguments, server_address=evil)
    for path in ("/", f"/rounds/{round_.pk}/", f"/rounds/{round_.pk}/card?edit=1"):
        page = text(client_for(alice).get(path))
        assert "<script>alert" not in page
        assert "<a href='//evil" not in page
        assert "&lt;script&gt;" in page


def test_the_page_obeys_its_content_security_policy(client_for: Any, alice: Any, make_round: Any) -> None:
    make_round()
    page = text(client_for(alice).get("/"))
    assert " style=" not in page
    assert "<style" not in page
    assert " onclick=" not in page
    assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" src=')
