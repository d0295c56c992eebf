"""Questions that go on by themselves (m8tes-http 4.5), as the database, the page and API clients see it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from runs import clock, round_rows, rounds
from runs.models import Event, Round, Run, Step, User
from runs.round_states import RoundKind
from runs.run_states import TurnStatus
from runs.turns import set_status
from runs.worker import asking
from runs.worker.deadlines import sweep
from tests.api.conftest import Caller
from tests.api.requests import error_code, request_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]

PLAIN = {
    "question": "Where?",
    "header": "Where",
    "multiSelect": False,
    "options": [{"label": "a"}, {"label": "b"}],
}
COLOUR = {
    "question": "Colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "red"}, {"label": "blue (Recommended)"}],
}
DAYS = {
    "question": "Days?",
    "header": "Days",
    "multiSelect": True,
    "options": [{"label": "Mon (Recommended)"}, {"label": "Tue"}, {"label": "Wed (Recommended)"}],
}
NOBODY = "[auto-selected: nobody answered in time]"
SECONDS = dt.timedelta(seconds=600)


@pytest.fixture
def ask(make_run: MakeRun) -> Callable[..., Round]:
    """An ask as the worker opens it."""

    def opened(*questions: dict[str, Any]) -> Round:
        run = make_run()
        turn = run.turns.get()
        set_status(run, turn, TurnStatus.RUNNING_TURN)
        step = Step.objects.create(run=run, turn=turn, seq=1, kind="ask", path="steps.0", params={})
        asking.question(run, turn, step, questions)
        return Round.objects.get(run=run)

    return opened


def due(round_: Round, *, seconds: float = 1, **more: Any) -> None:
    """Its time was up this many seconds ago."""
    at = clock.now() - dt.timedelta(seconds=seconds)
    Round.objects.filter(pk=round_.pk).update(continue_at=at, **more)


def fresh(round_: Round) -> Round:
    return Round.objects.select_related("run").get(pk=round_.pk)


def flat(page: str) -> str:
    """The words of a page, without markup."""
    return " ".join(re.sub(r"<[^>]*>", "", page).split())


# --- when ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("questions", "goes_on"),
    [((COLOUR,), True), ((COLOUR, DAYS), True), ((PLAIN,), False), ((COLOUR, PLAIN), False)],
    ids=["recommended", "all recommended", "none", "one without"],
)
def test_an_ask_goes_on_only_if_every_question_has_a_recommendation(
    ask: Callable[..., Round], questions: Any, goes_on: bool
) -> None:
    round_ = ask(*questions)

    assert (round_.continue_at is not None) is goes_on
    if round_.continue_at:
        assert abs(round_.continue_at - clock.now() - SECONDS) < dt.timedelta(minutes=1)


@pytest.mark.parametrize("kind", [kind.value for kind in RoundKind if kind is not RoundKind.QUESTION])
def test_nothing_but_a_question_goes_on_by_itself(make_round: Callable[..., Round], kind: str) -> None:
    round_ = make_round(kind)

    assert round_.continue_at is None
    rounds.go_on(round_)
    sweep()
    assert fresh(round_).status == "pending"


def test_before_its_time_a_question_waits(ask: Callable[..., Round]) -> None:
    round_ = ask(COLOUR)

    sweep()

    assert fresh(round_).status == "pending"


def test_what_an_older_time_limit_ended_first_has_timed_out(ask: Callable[..., Round]) -> None:
    round_ = ask(COLOUR)
    due(round_, deadline=clock.now() - dt.timedelta(seconds=5))

    sweep()

    assert fresh(round_).outcome == "timed_out"
    assert fresh(round_).run.outcome == "timed_out"


def test_a_time_limit_that_came_later_ends_nothing_however_late_somebody_looks(
    ask: Callable[..., Round],
) -> None:
    round_ = ask(COLOUR)
    due(round_, seconds=60, deadline=clock.now() - dt.timedelta(seconds=1))

    sweep()

    assert fresh(round_).outcome == "answered"
    assert fresh(round_).run.status == "running_turn"


def test_an_answer_that_comes_after_both_is_told_that_the_run_went_on(
    caller: Caller, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    due(round_, seconds=60, deadline=clock.now() - dt.timedelta(seconds=1))

    response = caller.post(f"runs/{round_.run_id}/answer", {"answers": {"Colour?": "red"}})

    assert (response.status_code, error_code(response)) == (409, "auto_continued")
    assert fresh(round_).outcome == "answered"


def test_a_person_who_answers_before_anybody_looked_is_heard(
    caller: Caller, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    due(round_)

    assert caller.post(f"runs/{round_.run_id}/answer", {"answers": {"Colour?": "red"}}).status_code == 200
    sweep()

    assert fresh(round_).responses == {"q0": {"action": "accept", "content": {"selected": [0]}}}
    assert request_of(caller, round_)["auto_resolved"] is False


# --- what follows -------------------------------------------------------------------------------------------------


def test_the_recommended_options_are_taken_and_the_run_is_due(ask: Callable[..., Round]) -> None:
    round_ = ask(COLOUR, DAYS)
    due(round_)

    assert sweep() == [round_.run_id]

    taken = fresh(round_)
    assert taken.responses == {
        "q0": {"action": "accept", "content": {"selected": [1]}},
        "q1": {"action": "accept", "content": {"selected": [0, 2]}},
    }
    assert (taken.decided_by, taken.decided_via, taken.run.status) == (None, "recommended", "running_turn")
    assert asking.answer_value(taken) == {
        "status": "done",
        "answers": {
            "Colour?": "blue (Recommended)",
            "Days?": ["Mon (Recommended)", "Wed (Recommended)"],
        },
        "auto_resolved": True,
    }


def test_clients_find_the_marks_of_an_answer_that_nobody_gave(
    caller: Caller, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR, DAYS)
    due(round_)
    sweep()

    request = request_of(caller, round_)

    assert (request["status"], request["auto_resolved"]) == ("allowed", True)
    assert request["tool_input"]["answers"] == {
        "Colour?": f"blue (Recommended) {NOBODY}",
        "Days?": f"Mon (Recommended), Wed (Recommended) {NOBODY}",
    }


@pytest.mark.parametrize("with_id", [True, False])
def test_whoever_answers_later_is_told_to_reply(
    caller: Caller, ask: Callable[..., Round], with_id: bool
) -> None:
    round_ = ask(COLOUR)
    due(round_)
    sweep()
    body = {"answers": {"Colour?": "red"}} | ({"request_id": round_.pk} if with_id else {})

    response = caller.post(f"runs/{round_.run_id}/answer", body)

    assert (response.status_code, error_code(response)) == (409, "auto_continued")
    assert "Reply" in response.json()["error"]["message"]


def test_an_ask_that_did_not_wait_cannot_be_answered_either(caller: Caller, make_run: MakeRun) -> None:
    run = make_run()
    Step.objects.create(
        run=run,
        turn=run.turns.get(),
        seq=1,
        kind="ask",
        path="steps.0",
        params={"questions": [COLOUR], "blocking": False},
        result={"status": "done", "answers": {"Colour?": "blue (Recommended)"}, "auto_resolved": True},
    )

    for more in ({}, {"request_id": f"ask_{run.pk}_1"}):
        response = caller.post(f"runs/{run.pk}/answer", {"answers": {"Colour?": "red"}, **more})
        assert (response.status_code, error_code(response)) == (409, "auto_continued")
    other = caller.post(f"runs/{run.pk}/answer", {"answers": {"Size?": "L"}})
    assert error_code(other) == "not_awaiting_input"
    approve = {"request_id": f"ask_{run.pk}_1", "decision": "allow"}
    assert error_code(caller.post(f"runs/{run.pk}/approve", approve)) == "use_answer"


def test_going_on_twice_changes_nothing(ask: Callable[..., Round]) -> None:
    round_ = ask(COLOUR)
    due(round_)
    sweep()
    sweep()
    rounds.go_on(round_rows.lock(round_.pk))

    assert fresh(round_).version == 2
    assert Event.objects.filter(run=round_.run_id, type="question.response").count() == 1


# --- the page -----------------------------------------------------------------------------------------------------


def test_a_card_counts_down_and_says_what_will_happen(
    client_for: Callable[[User], Client], alice: User, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    page = client_for(alice).get(f"/rounds/{round_.pk}/").content.decode()

    assert "then the run goes on by itself with blue (Recommended)" in flat(page)
    assert round_.continue_at is not None
    assert f'data-deadline="{round_.continue_at.isoformat()}" data-goes-on' in page
    assert "Give 15 more minutes" in page


def test_a_card_whose_time_limit_comes_first_promises_nothing(
    client_for: Callable[[User], Client], alice: User, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    Round.objects.filter(pk=round_.pk).update(deadline=timezone.now() + dt.timedelta(minutes=1))
    page = client_for(alice).get(f"/rounds/{round_.pk}/").content.decode()

    assert "goes on by itself" not in flat(page)
    assert "data-goes-on" not in page


def test_people_can_add_time(
    client_for: Callable[[User], Client], alice: User, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    Round.objects.filter(pk=round_.pk).update(continue_at=clock.now() + dt.timedelta(seconds=30))
    before = fresh(round_).continue_at

    assert client_for(alice).post(f"/rounds/{round_.pk}/extend").status_code == 302

    after = fresh(round_).continue_at
    assert before is not None
    assert after == before + dt.timedelta(minutes=15)
    sweep()
    assert fresh(round_).status == "pending"


def test_what_is_about_to_go_on_stands_before_what_waits_for_ever(
    client_for: Callable[[User], Client],
    alice: User,
    make_round: Callable[..., Round],
    ask: Callable[..., Round],
) -> None:
    for_ever, soon = make_round(), ask(COLOUR)
    page = client_for(alice).get("/").content.decode()

    assert page.index(f'data-round="{soon.pk}"') < page.index(f'data-round="{for_ever.pk}"')


def test_afterwards_card_and_timeline_say_that_nobody_answered(
    client_for: Callable[[User], Client], alice: User, ask: Callable[..., Round]
) -> None:
    round_ = ask(COLOUR)
    due(round_)
    sweep()

    ending = client_for(alice).get(f"/rounds/{round_.pk}/ending").content.decode()
    run = client_for(alice).get(reverse("run-detail", args=[round_.run_id])).content.decode()

    assert "Nobody answered in time, so the run went on with what the agent recommended." in flat(ending)
    assert "Nobody answered in time; what the agent recommended was taken" in flat(run)
