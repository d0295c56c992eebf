"""Creating runs and answering back: the rules below every transport (m8tes-http 4.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs import control, end_users, turns
from runs.control import Submission
from runs.errors import ModelValidationError, NotFound, StateConflict
from runs.models import Account, Agent, EndUser, Event, Round, Run, Server, Task, User
from runs.round_rows import Decider
from runs.run_states import HumanInput, Outcome
from runs.submission_checks import MAX_MESSAGE

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
BY_MODE = Decider(user=None, via="test")


def with_modes(agent: Agent, agent_mode: str, task_mode: str | None) -> Task:
    agent.default_mode = agent_mode
    agent.save()
    return Task.objects.create(account=agent.account, agent=agent, instructions="x", default_mode=task_mode)


# --- create ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "of_task", "of_agent", "mode"),
    [
        ("plan", "autonomous", "approval", "plan"),
        ("autonomous", "plan", "approval", "autonomous"),
        (None, "plan", "approval", "plan"),
        (None, None, "approval", "approval"),
    ],
)
def test_the_request_beats_the_task_and_the_task_beats_the_agent(
    agent: Agent, asked: str | None, of_task: str | None, of_agent: str, mode: str
) -> None:
    task = with_modes(agent, of_agent, of_task)

    assert control.create_run(agent, Submission(message="Go", mode=asked, task=task)).mode == mode


@pytest.mark.parametrize(
    ("mode", "asked", "stored"),
    [
        ("autonomous", None, "fail"),
        ("autonomous", HumanInput.FAIL, "fail"),
        ("autonomous", HumanInput.MANAGED, "managed"),
        ("approval", None, "managed"),
        ("approval", HumanInput.MANAGED, "managed"),
        ("plan", None, "managed"),
    ],
)
def test_human_input_follows_the_mode_when_it_is_left_out(
    agent: Agent, mode: str, asked: HumanInput | None, stored: str
) -> None:
    run = control.create_run(agent, Submission(message="Go", mode=mode, human_input=asked))

    assert run.human_input == stored


@pytest.mark.parametrize("mode", ["approval", "plan"])
def test_a_mode_that_asks_people_refuses_human_input_off(agent: Agent, mode: str) -> None:
    with pytest.raises(ModelValidationError, match="human_in_the_loop cannot be false"):
        control.create_run(agent, Submission(message="Go", mode=mode, human_input=HumanInput.FAIL))
    assert not Run.objects.exists()


def test_a_word_that_is_no_mode_is_refused(agent: Agent) -> None:
    with pytest.raises(ModelValidationError, match="autonomous, approval, plan"):
        control.create_run(agent, Submission(message="Go", mode="yolo"))


@pytest.mark.parametrize("message", ["", "   \n", "x" * (MAX_MESSAGE + 1)])
def test_a_message_that_is_empty_or_too_long_opens_nothing(
    agent: Agent, make_run: MakeRun, message: str
) -> None:
    with pytest.raises(ModelValidationError, match="between 1 and 20,000 characters"):
        control.create_run(agent, Submission(message=message))
    run = make_run()
    with pytest.raises(ModelValidationError, match="between 1 and 20,000 characters"):
        control.reply(run.pk, message)
    assert run.turns.count() == 1


def test_the_longest_message_is_taken_and_space_around_it_is_not(agent: Agent) -> None:
    run = control.create_run(agent, Submission(message=f"\n {'x' * MAX_MESSAGE} "))

    assert run.message == "x" * MAX_MESSAGE


def test_a_disabled_agent_starts_nothing(agent: Agent) -> None:
    agent.enabled = False

    with pytest.raises(ModelValidationError, match="disabled"):
        control.create_run(agent, Submission(message="Go"))


def test_a_selection_that_names_a_tool_twice_is_refused(agent: Agent) -> None:
    with pytest.raises(ModelValidationError, match="twice"):
        control.create_run(agent, Submission(message="Go", tools=["desk", "desk"]))


def test_a_new_run_is_queued_due_and_told_in_its_history(agent: Agent, alice: User) -> None:
    run = control.create_run(agent, Submission(message="Go", started_by=alice))

    run.refresh_from_db()
    assert (run.status, run.wake_seq, run.turns.get().status) == ("queued", 1, "queued")
    event = Event.objects.get(run=run)
    assert (event.type, event.actor, event.payload["message"]) == ("run.started", alice, "Go")


def test_an_end_user_is_made_by_first_use_and_found_by_the_second(agent: Agent) -> None:
    first, second = (control.create_run(agent, Submission(message="Go", user_id="cust_1")) for _ in range(2))
    other = control.create_run(agent, Submission(message="Go", user_id="cust_2"))

    assert first.end_user == second.end_user
    assert first.end_user != other.end_user
    assert control.create_run(agent, Submission(message="Go")).end_user is None


def test_the_same_user_id_is_somebody_else_in_another_account(
    account: Account, other_account: Account
) -> None:
    ours, theirs = (end_users.end_user(each, "cust_1") for each in (account, other_account))

    assert ours != theirs
    assert EndUser.objects.count() == 2


@pytest.mark.parametrize("user_id", ["", "  ", "x" * 201])
def test_a_user_id_that_names_nobody_is_a_mistake(account: Account, user_id: str) -> None:
    with pytest.raises(ModelValidationError, match="between 1 and 200 characters"):
        end_users.end_user(account, user_id)


# --- what a turn freezes --------------------------------------------------------------------------------------


def test_every_turn_keeps_the_definition_and_bindings_it_started_with(
    agent: Agent, desk: Server, make_run: MakeRun
) -> None:
    run = make_run()
    before = dict(agent.definition)
    desk.tools.filter(name="refund").update(digest="sha256:changed")
    desk.tools.filter(name="send_email").update(present=False)
    agent.definition = {"steps": [{"say": "Changed."}]}
    agent.save()

    second = control.reply(run.pk, "And now?")

    first = run.turns.get(index=0)
    assert (first.definition, second.definition) == (before, agent.definition)
    assert set(first.bindings["desk"]["tools"]) == {"send_email", "get_customer", "refund"}
    assert second.bindings["desk"]["tools"]["refund"] == "sha256:changed"
    assert "send_email" not in second.bindings["desk"]["tools"]
    assert first.bindings["desk"]["identity"] == desk.identity


def test_only_the_first_turn_of_a_submission_that_approves_its_tools_approves_them(agent: Agent) -> None:
    run = control.create_run(agent, Submission(message="Go", tools=["desk"], tools_approve=True))
    second = control.reply(run.pk, "More")

    assert (run.turns.get(index=0).tools_approve, second.tools_approve) == (True, False)
    assert second.tools == ["desk"]


# --- reply ----------------------------------------------------------------------------------------------------


def test_a_reply_to_a_live_run_waits_its_turn(make_round: MakeRound) -> None:
    run = make_round().run
    control.reply(run.pk, "Hurry")

    run.refresh_from_db()
    current = turns.current(run)
    assert current is not None
    assert (current.index, run.status) == (0, "waiting_for_input")
    turns.finish(run, current, Outcome.COMPLETED, output="first")
    run.refresh_from_db()
    following = turns.current(run)
    assert following is not None
    assert (following.index, run.status, run.outcome) == (1, "queued", None)


def test_a_reply_opens_a_finished_run_again(make_run: MakeRun, decider: Decider) -> None:
    run = make_run()
    control.cancel(run.pk, decider=decider)

    turn = control.reply(run.pk, "Once more")

    run.refresh_from_db()
    assert (turn.index, run.status, run.outcome) == (1, "queued", None)


def test_the_history_names_who_wrote_a_reply_and_not_who_started_the_run(
    agent: Agent, alice: User, bob: User
) -> None:
    run = control.create_run(agent, Submission(message="Go", started_by=alice))
    control.reply(run.pk, "by bob", user=bob)
    control.reply(run.pk, "by a program")

    names = Event.objects.filter(run=run).order_by("seq").values_list("actor_name", flat=True)
    assert list(names) == ["alice", "bob", "api"]


def test_a_child_run_takes_no_reply(make_run: MakeRun, make_child: Callable[..., Run]) -> None:
    parent = make_run()
    child = make_child(parent)

    with pytest.raises(StateConflict, match=f"belongs to run {parent.pk}"):
        control.reply(child.pk, "Hello?")


def test_a_run_that_is_not_there_is_not_found(db: None, decider: Decider) -> None:
    for act in (
        lambda: control.reply(1, "Hello?"),
        lambda: control.cancel(1, decider=decider),
        lambda: control.set_mode(1, "plan", decider=decider),
    ):
        with pytest.raises(NotFound):
            act()


# --- children -------------------------------------------------------------------------------------------------


def test_a_child_inherits_end_user_human_input_and_selection(
    make_run: MakeRun, make_child: Callable[..., Run]
) -> None:
    parent = make_run(user_id="cust_1", tools=["desk:refund"], mode="autonomous")
    child = make_child(parent, user_id="cust_2", tools=["desk"], human_input=HumanInput.FAIL)

    assert (child.end_user, child.tools, child.human_input) == (parent.end_user, ["desk:refund"], "managed")
    assert Event.objects.get(run=child).actor_name == "parent run"


@pytest.mark.parametrize(
    ("of_parent", "of_child", "mode"),
    [
        ("approval", "autonomous", "approval"),
        ("plan", "approval", "plan"),
        ("autonomous", "plan", "plan"),
        ("approval", "approval", "approval"),
    ],
)
def test_a_child_is_never_laxer_than_its_parent(
    make_run: MakeRun, make_child: Callable[..., Run], of_parent: str, of_child: str, mode: str
) -> None:
    assert make_child(make_run(mode=of_parent), mode=of_child).mode == mode
