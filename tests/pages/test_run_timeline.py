"""What a run's timeline tells: every step, every decision, and nothing as markup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.decisions import Remember, decide
from approvals.models import Policy
from runs import control, timeline
from runs.access import actor_for
from runs.models import Round, Run, ToolCall, User
from runs.requests import APPROVAL_KEY
from runs.round_rows import Decider
from runs.rounds import answer
from runs.run_states import CallPhase, Outcome, TurnStatus
from runs.steps import StepKind
from runs.turns import finish, set_status

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
ClientFor = Callable[[User], Client]


def texts(run: Run) -> str:
    shown = timeline.page(Run.objects.get(pk=run.pk))
    return "\n".join(repr(row) for row in shown.rows)


def test_a_new_run_shows_its_message_and_who_started_it(make_run: MakeRun, alice: User) -> None:
    run = make_run("Send the update", started_by=alice)
    (row,) = timeline.page(run).rows
    assert (row.sentence, row.body) == ("alice started the run", "Send the update")


def test_what_the_agent_says_stands_in_order(make_run: MakeRun, add_step: Any) -> None:
    run = make_run()
    for text in ("one", "two", "three"):
        add_step(run, StepKind.SAY, {"text": text}, {"status": "done"})
    assert [row.body for row in timeline.page(run).rows][1:] == ["one", "two", "three"]


def test_a_call_that_a_policy_allowed_names_the_rule(make_run: MakeRun, add_step: Any) -> None:
    run = make_run()
    verdict = {"effect": "allow", "reason": "Allowed by a rule.", "rule_id": 12}
    add_step(
        run,
        StepKind.CALL,
        {},
        {"status": "done", "result": {"id": 7}, "error": None},
        asked={"to": "ann@example.com"},
        phase=CallPhase.DONE.value,
        verdict=verdict,
    )
    row = timeline.page(run).rows[-1]
    assert (row.sentence, row.target) == ("Called", "desk:send_email")
    assert row.reason == "Allowed without asking: Allowed by a rule."
    assert row.rule is not None
    assert (row.rule.id, row.rule.lead, row.rule.sentence) == (12, "Allowed by the policy:", "number 12.")
    assert row.rule.gone == "It is gone.", "nothing is known of it"
    assert [(block.label, block.part) for block in row.blocks] == [("Arguments", ""), ("Result", "")]
    assert '"to": "ann@example.com"' in row.blocks[0].text


@pytest.mark.parametrize(
    ("phase", "status", "sentence"),
    [
        ("failed", "failed", "Failed to call"),
        ("denied", "denied", "Was not allowed to call"),
        ("failed", "cancelled", "Cancelled before it could call"),
        ("unknown", None, "Nobody knows yet the outcome of"),
        ("sent", None, "Calling"),
    ],
)
def test_every_end_of_a_call_has_its_own_words(
    make_run: MakeRun, add_step: Any, phase: str, status: str | None, sentence: str
) -> None:
    run = make_run()
    result = {"status": status, "result": None, "error": "No mail server."} if status else None
    add_step(run, StepKind.CALL, {}, result, asked={}, phase=phase)
    row = timeline.page(run).rows[-1]
    assert row.sentence == sentence
    assert row.error == ("No mail server." if status else "")
    assert row.open is (status is None)


def test_a_decision_tells_who_when_and_which_arguments_were_edited(
    make_round: MakeRound, alice: User
) -> None:
    round_ = make_round("approval")
    edited = {"to": "bo@example.com", "subject": "Weekly update", "amount": 20}
    content = {"decision": "allow", "arguments": edited}
    responses = {APPROVAL_KEY: {"action": "accept", "content": content}}
    answer(
        round_.pk, responses, decider=Decider(user=alice, via="page"), idempotency_key="k1", note="Only Bo."
    )
    ToolCall.objects.update(edited=edited)
    row = timeline.page(round_.run).rows[-1]
    (pause,) = row.pauses
    assert (pause.sentence, pause.note, pause.pending) == ("alice allowed it on the page", "Only Bo.", False)
    assert pause.delivery == "not delivered yet"
    assert "ann@example.com" in row.blocks[0].text
    assert "bo@example.com" in row.blocks[1].text


def test_a_remembered_rule_and_one_that_closed_a_card_are_told(
    make_round: MakeRound, alice: User, client_for: ClientFor
) -> None:
    first = make_round("approval")
    second = make_round("approval", run=first.run)
    decide(
        actor_for(alice),
        first.pk,
        {APPROVAL_KEY: {"action": "accept", "content": {"decision": "allow"}}},
        idempotency_key="k1",
        remember=Remember(scope="run"),
    )
    told = {row.key: row.pauses[0] for row in timeline.page(first.run).rows if row.pauses}
    policy = Policy.objects.get()
    rules = {key: pause.rule for key, pause in told.items()}
    assert rules["step-1"].lead == "Remembered as the policy:"
    assert told["step-2"].sentence == "A policy allowed it"
    assert (rules["step-2"].lead, told["step-2"].why) == ("Allowed by the policy:", "")
    for rule in rules.values():
        assert rule.sentence.startswith("Allow desk:send_email for the rest of run")
        assert (rule.id, rule.gone) == (policy.pk, "")
    page = client_for(alice).get(f"/runs/{second.run_id}").content.decode()
    assert page.count(f'href="/policies/{policy.pk}/revoke"') == 2


def test_a_pending_pause_waits_in_its_step(make_round: MakeRound) -> None:
    round_ = make_round("plan")
    row = timeline.page(round_.run).rows[-1]
    assert [(pause.sentence, pause.pending) for pause in row.pauses] == [
        ("Waits for a word on the plan", True)
    ]


def test_the_fields_of_an_elicitation_are_listed(make_round: MakeRound, alice: User) -> None:
    round_ = make_round("elicitation")
    responses = {"shipping_address": {"action": "accept", "content": {"street": "Kai 1"}}}
    answer(round_.pk, responses, decider=Decider(user=alice, via="page"), idempotency_key="k1")
    (pause,) = timeline.page(round_.run).rows[-1].pauses
    assert [(one.label, one.text) for one in pause.answers] == [("street", "Kai 1")]


def test_a_declined_elicitation_says_so(make_round: MakeRound, alice: User) -> None:
    round_ = make_round("elicitation")
    answer(
        round_.pk,
        {"shipping_address": {"action": "decline"}},
        decider=Decider(user=alice, via="page"),
        idempotency_key="k1",
    )
    assert timeline.page(round_.run).rows[-1].pauses[0].sentence == "alice declined on the page"


def test_the_end_of_a_turn_stands_after_its_last_step(make_run: MakeRun, add_step: Any) -> None:
    run = make_run()
    turn = run.turns.get()
    set_status(run, turn, TurnStatus.RUNNING_TURN)
    add_step(run, StepKind.FINISH, {"text": "All sent."}, {"status": "done"})
    finish(run, turn, Outcome.COMPLETED, output="All sent.")
    rows = timeline.page(run).rows
    assert [row.sentence for row in rows][1:] == ["The agent finished"]
    assert rows[-1].body == "All sent."


def test_a_change_of_the_mode_is_a_line(make_run: MakeRun, alice: User) -> None:
    run = make_run()
    control.set_mode(run.pk, "plan", decider=Decider(user=alice, via="page"))
    assert timeline.page(run).rows[-1].sentence == "alice changed the mode from approval to plan"


def test_a_large_result_is_cut_in_the_page_and_whole_in_the_text(
    make_run: MakeRun, add_step: Any, alice: User, client_for: ClientFor
) -> None:
    run = make_run()
    long = "x" * 50_000
    step = add_step(
        run,
        StepKind.CALL,
        {},
        {"status": "done", "result": {"text": long}, "error": None},
        asked={},
        phase=CallPhase.DONE.value,
    )
    (block,) = timeline.page(run).rows[-1].blocks
    assert len(block.text) < 13_000
    assert block.part == "result"
    response = client_for(alice).get(f"/runs/{run.pk}/steps/{step.seq}/result.txt")
    assert long in response.content.decode()
    assert response["Content-Disposition"].startswith("attachment")
    assert response["Content-Type"].startswith("text/plain")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_a_result_that_the_journal_cut_is_downloaded_from_the_raw_one(
    make_run: MakeRun, add_step: Any, alice: User, client_for: ClientFor
) -> None:
    run = make_run()
    add_step(
        run,
        StepKind.CALL,
        {},
        {
            "status": "done",
            "result": {"truncated": True, "bytes": 5_000_000, "head": "begins"},
            "error": None,
        },
        asked={},
        phase=CallPhase.DONE.value,
        raw_result={"content": [{"type": "text", "text": "begins and ends"}]},
    )
    (block,) = timeline.page(run).rows[-1].blocks
    assert (block.text, block.part) == ("begins", "result")
    response = client_for(alice).get(f"/runs/{run.pk}/steps/1/result.txt")
    assert "begins and ends" in response.content.decode()


def test_a_long_run_is_shown_in_windows_that_miss_nothing(make_run: MakeRun, add_step: Any) -> None:
    run = make_run()
    for number in range(230):
        add_step(run, StepKind.SAY, {"text": f"line {number}"}, {"status": "done"})
    seen: list[str] = []
    before: int | None = None
    for _ in range(3):
        shown = timeline.page(run, before=before)
        seen = [row.body for row in shown.rows] + seen
        before = shown.earlier
    assert before is None
    assert seen == ["Send the update", *[f"line {number}" for number in range(230)]]


def test_a_timeline_costs_the_same_queries_whatever_its_length(
    make_run: MakeRun, add_step: Any, django_assert_num_queries: Callable[[int], Any]
) -> None:
    run = make_run()
    for _ in range(40):
        add_step(
            run, StepKind.CALL, {}, {"status": "done", "result": 1, "error": None}, asked={}, phase="done"
        )
    with django_assert_num_queries(5):
        timeline.page(run)


def test_catching_up_brings_what_changed_and_what_is_open(make_round: MakeRound, alice: User) -> None:
    round_ = make_round("approval")
    run = Run.objects.get(pk=round_.run_id)
    before = timeline.page(run)
    responses = {APPROVAL_KEY: {"action": "accept", "content": {"decision": "deny"}}}
    answer(round_.pk, responses, decider=Decider(user=alice, via="page"), idempotency_key="k1")
    run.refresh_from_db()
    news = timeline.since(run, after=before.seq)
    assert news.seq > before.seq
    assert [row.key for row in news.rows] == ["step-1"]
    assert news.rows[0].version != before.rows[-1].version


def test_a_server_s_words_never_become_markup(
    make_run: MakeRun, add_step: Any, alice: User, client_for: ClientFor
) -> None:
    run = make_run('<img src=x onerror="alert(1)">')
    hostile = "<script>alert(1)</script>\u202e"
    add_step(
        run,
        StepKind.CALL,
        {},
        {"status": "failed", "result": None, "error": hostile},
        asked={"<b>key</b>": hostile},
        phase="failed",
        name="<i>tool</i>",
    )
    page = client_for(alice).get(f"/runs/{run.pk}").content.decode()
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "<i>tool</i>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in page


def test_a_null_is_never_shown_as_a_word(make_run: MakeRun) -> None:
    run = make_run()
    turn = run.turns.get()
    set_status(run, turn, TurnStatus.RUNNING_TURN)
    finish(run, turn, Outcome.COMPLETED, output="All sent.")
    assert [row.error for row in timeline.page(run).rows] == ["", ""]


def test_a_call_under_way_shows_how_far_its_server_says_it_is(make_round: Callable[..., Round]) -> None:
    run = make_round().run
    call = ToolCall.objects.get(step__run=run)
    call.phase, call.wire = "sent", {"progress": {"value": 2, "total": 5, "message": "packing"}}
    call.save()
    (row,) = [row for row in timeline.page(run).rows if row.step]
    assert row.body == "2 of 5: packing"
    call.wire = {"progress": {"value": 3, "total": None, "message": None}}
    call.save()
    (row,) = [row for row in timeline.page(run).rows if row.step]
    assert row.body == "3"
