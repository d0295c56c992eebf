"""The next step of a playbook is a pure function of the journal (design section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from runs.harnesses import get_harness
from runs.steps import (
    Ask,
    Call,
    Entry,
    Fail,
    Finish,
    Journal,
    Prompt,
    Proposal,
    ProposePlan,
    Read,
    RunAgent,
    Say,
    Sleep,
    StepKind,
    TurnJournal,
)

PLAYBOOK = get_harness("playbook")
Answer = Callable[[Proposal], Mapping[str, Any]]

KINDS = {
    Call: StepKind.CALL,
    Prompt: StepKind.PROMPT,
    Read: StepKind.READ,
    Say: StepKind.SAY,
    Ask: StepKind.ASK,
    ProposePlan: StepKind.PLAN,
    Sleep: StepKind.SLEEP,
    RunAgent: StepKind.RUN,
    Finish: StepKind.FINISH,
    Fail: StepKind.FINISH,
}


def done(_proposal: Proposal) -> Mapping[str, Any]:
    return {"status": "done", "result": {"n": 1}, "error": None}


def entry(proposal: Proposal, result: Mapping[str, Any] | None) -> Entry:
    return Entry(
        path=proposal.path,
        kind=KINDS[type(proposal)],
        bind=proposal.bind,
        required=proposal.required,
        result=result,
    )


class Run:
    """A run in memory: journals what is proposed, with the results that `answer` gives."""

    def __init__(self, definition: Mapping[str, Any], answer: Answer = done) -> None:
        assert PLAYBOOK.validate(definition) == []
        self.definition = definition
        self.answer = answer
        self.turns: list[TurnJournal] = []

    def next(self, message: str, entries: Sequence[Entry]) -> Sequence[Proposal]:
        turn = TurnJournal(
            index=len(self.turns), message=message, definition=self.definition, entries=tuple(entries)
        )
        journal = Journal(turns=(*self.turns, turn), user_id="cust_123", metadata={"tier": "gold"})
        first = PLAYBOOK.next_steps(journal)
        assert PLAYBOOK.next_steps(journal) == first, "the walk is not a pure function of the journal"
        return first

    def turn(self, message: str = "go") -> list[Proposal]:
        """Everything one turn proposes until it ends; then the run waits for a reply."""
        entries: list[Entry] = []
        proposed: list[Proposal] = []
        while found := self.next(message, entries):
            assert not {one.path for one in found} & {one.path for one in entries}, "a path came twice"
            proposed.extend(found)
            entries.extend(entry(one, self.answer(one)) for one in found)
            assert len(proposed) < 100
        self.turns.append(
            TurnJournal(index=len(self.turns), message=message, definition=self.definition, entries=entries)
        )
        return proposed


def outline(proposals: Sequence[Proposal]) -> list[tuple[str, str]]:
    return [(type(one).__name__, one.path) for one in proposals]


def test_every_kind_of_step_becomes_its_proposal_in_order() -> None:
    question = {"question": "Which?", "header": "Pick", "options": [{"label": "a"}, {"label": "b"}]}
    proposed = Run(
        {
            "steps": [
                {"say": "Hello {{ user_id }} ({{ metadata.tier }})"},
                {"call": "desk:find", "args": {"q": "{{ message }}"}, "as": "f", "required": True},
                {"prompt": "desk:letter", "args": {"n": "{{ f.result.n }}"}},
                {"read": "desk:file:///{x}"},
                {"ask": {"questions": [question], "blocking": False}, "as": "a"},
                {"run": {"agent": "helper", "message": "n is {{ f.result.n }}"}},
                {"sleep": 2},
                {"finish": "bye {{ message }}"},
            ]
        }
    ).turn()
    assert proposed == [
        Say(path="steps.0", text="Hello cust_123 (gold)"),
        Call(path="steps.1", bind="f", required=True, target="desk:find", args={"q": "go"}),
        Prompt(path="steps.2", target="desk:letter", args={"n": "1"}),
        Read(path="steps.3", target="desk:file:///{x}"),
        Ask(path="steps.4", bind="a", questions=[{**question, "multiSelect": False}], blocking=False),
        RunAgent(path="steps.5", agent="helper", message="n is 1"),
        Sleep(path="steps.6", seconds=2.0),
        Finish(path="steps.7", text="bye go"),
    ]


def test_nothing_is_proposed_while_a_step_is_open() -> None:
    run = Run({"steps": [{"call": "a:b"}, {"say": "x"}]})
    (call,) = run.next("go", [])
    assert run.next("go", [entry(call, None)]) == []


def test_nothing_is_proposed_once_the_turn_is_over() -> None:
    run = Run({"steps": [{"finish": "x"}]})
    (finish,) = run.next("go", [])
    assert run.next("go", [entry(finish, {"status": "done"})]) == []


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("Draft the WEEKLY customer update", "cases.0.steps.0"),
        ("customer UPDATE", "cases.1.steps.0"),
        ("else", "steps.0"),
    ],
)
def test_the_first_case_whose_words_are_in_the_message_is_played(message: str, path: str) -> None:
    definition = {
        "cases": [
            {"when": "weekly Customer update", "steps": [{"say": "first"}]},
            {"when": "customer update", "steps": [{"say": "second"}]},
        ],
        "steps": [{"say": "otherwise"}],
    }
    assert Run(definition).turn(message)[0].path == path


def test_a_message_that_fits_no_case_finishes_with_a_sentence() -> None:
    assert Run({"cases": [{"when": "x", "steps": [{"say": "s"}]}]}).turn("go") == [
        Finish(path="end", text="This playbook has no steps for that message.")
    ]


def test_a_turn_ends_with_the_last_thing_said() -> None:
    said = Run({"steps": [{"say": "one"}, {"say": "two"}, {"call": "a:b"}]}).turn()
    assert said[-1] == Finish(path="end", text="two")
    assert Run({"steps": [{"call": "a:b"}]}).turn()[-1] == Finish(
        path="end", text="The playbook came to its end."
    )


def test_replies_play_their_own_steps_see_earlier_bindings_and_the_new_message() -> None:
    run = Run(
        {
            "steps": [{"call": "a:b", "as": "x"}],
            "replies": [[{"say": "{{ x.result.n }} {{ message }}"}], [{"call": "a:c", "as": "x"}]],
        }
    )
    run.turn("first")
    assert run.turn("by region")[0] == Say(path="replies.0.0", text="1 by region")
    assert outline(run.turn("more")) == [("Call", "replies.1.0"), ("Finish", "end")]
    assert run.turn("even more") == [Finish(path="end", text="This playbook has no steps for another reply.")]


def test_a_step_whose_condition_does_not_hold_is_skipped_and_its_name_stays_null() -> None:
    proposed = Run(
        {
            "steps": [
                {"call": "a:b", "if": "message == 'other'", "as": "x"},
                {"call": "a:c", "if": "!x", "args": {"x": "{{ x }}"}},
            ]
        }
    ).turn()
    assert proposed[0] == Call(path="steps.1", target="a:c", args={"x": None})


def test_a_condition_sees_only_what_stands_before_it() -> None:
    definition = {"steps": [{"say": "s", "if": "x"}, {"call": "a:b", "as": "x"}, {"say": "t", "if": "x"}]}
    assert outline(Run(definition).turn()) == [("Call", "steps.1"), ("Say", "steps.2"), ("Finish", "end")]


def test_an_answer_is_seen_under_the_text_of_its_question() -> None:
    question = {"question": "Which segment?", "header": "Segment"}
    definition = {
        "steps": [
            {"ask": {"questions": [question]}, "as": "a"},
            {"say": '{{ a.answers."Which segment?" }} it is'},
        ]
    }
    run = Run(definition, lambda _: {"status": "done", "answers": {"Which segment?": "enterprise"}})
    assert run.turn()[1] == Say(path="steps.1", text="enterprise it is")


def test_options_may_come_from_a_result_but_have_to_be_options() -> None:
    question = {"question": "Which?", "header": "Pick", "options": "{{ x.result.rows[].{label: name} }}"}
    definition = {"steps": [{"call": "a:b", "as": "x"}, {"ask": {"questions": [question]}}]}

    def rows(*names: Any) -> Answer:
        return lambda _: {"status": "done", "result": {"rows": [{"name": name} for name in names]}}

    ask = Run(definition, rows("{{ message }}", "b")).turn()[1]
    assert isinstance(ask, Ask)
    assert ask.questions[0]["options"] == [{"label": "{{ message }}"}, {"label": "b"}]
    for names, why in [(("a",), "2 to 50 options"), (("a", "a"), "twice"), (("a", 7), "must be text")]:
        failed = Run(definition, rows(*names)).turn()[-1]
        assert isinstance(failed, Fail)
        assert failed.text.startswith("steps[1].ask.questions[0].options")
        assert why in failed.text


def test_revise_shows_the_next_text_and_the_last_repeats_with_the_feedback() -> None:
    definition = {
        "steps": [{"plan": ["first", "second: {{ p.text }}"], "as": "p"}, {"say": "{{ p.status }}"}]
    }

    def revise_twice(proposal: Proposal) -> Mapping[str, Any]:
        if isinstance(proposal, ProposePlan) and proposal.revision < 2:
            return {"status": "revise", "text": f"shorter {proposal.revision}"}
        return {"status": "approved", "text": None}

    assert Run(definition, revise_twice).turn()[:4] == [
        ProposePlan(path="steps.0", bind="p", text="first"),
        ProposePlan(path="steps.0.r1", bind="p", text="second: shorter 0", revision=1, feedback="shorter 0"),
        ProposePlan(path="steps.0.r2", bind="p", text="second: shorter 1", revision=2, feedback="shorter 1"),
        Say(path="steps.1", text="approved"),
    ]


GROUP = {
    "steps": [
        {
            "parallel": [
                {"call": "a:one", "as": "one"},
                {"call": "a:two", "required": True, "args": {"seen": "{{ one }}"}},
                {"call": "a:three", "if": "one"},
            ]
        },
        {"say": "{{ one.status }}"},
    ]
}


def test_a_group_starts_together_and_sees_nothing_of_itself() -> None:
    assert Run(GROUP).next("go", []) == [
        Call(path="steps.0.parallel.0", bind="one", target="a:one", args={}),
        Call(path="steps.0.parallel.1", required=True, target="a:two", args={"seen": None}),
    ]


def test_a_group_whose_condition_does_not_hold_is_skipped_whole() -> None:
    definition = {"steps": [{"parallel": [{"call": "a:b"}], "if": "user_id == 'other'"}, {"say": "on"}]}
    assert outline(Run(definition).turn()) == [("Say", "steps.1"), ("Finish", "end")]


def test_a_group_that_was_journalled_in_part_proposes_only_the_rest_and_as_before() -> None:
    run = Run(GROUP)
    one, two = run.next("go", [])
    assert run.next("go", [entry(one, done(one))]) == [two]


def test_the_step_behind_a_group_waits_for_all_of_it_even_when_a_required_call_was_denied() -> None:
    run = Run(GROUP)
    one, two = run.next("go", [])
    denied = {"status": "denied", "result": None, "error": "not today"}
    assert run.next("go", [entry(one, None), entry(two, denied)]) == []
    assert run.next("go", [entry(one, done(one)), entry(two, denied)]) == [
        Fail(
            path="steps.0.required",
            text="steps[0].parallel[1] is required and ended as denied: not today",
        )
    ]


def test_required_on_a_group_makes_each_call_required() -> None:
    definition = {"steps": [{"parallel": [{"call": "a:b"}, {"call": "a:c"}], "required": True}]}
    assert [one.required for one in Run(definition).next("go", [])] == [True, True]


@pytest.mark.parametrize("status", ["denied", "failed", "cancelled", "timed_out"])
def test_a_required_step_that_did_not_succeed_ends_the_turn(status: str) -> None:
    for step in ({"call": "a:b"}, {"plan": ["p"]}, {"run": {"agent": "x", "message": "y"}}):
        definition = {"steps": [{**step, "required": True}, {"say": "never"}]}
        last = Run(definition, lambda _: {"status": status, "error": None}).turn()[-1]
        assert last == Fail(path="steps.0.required", text=f"steps[0] is required and ended as {status}")


def test_without_required_a_denied_call_is_a_result_like_any_other() -> None:
    definition = {"steps": [{"call": "a:b", "as": "x"}, {"say": "{{ x.status }}: {{ x.error }}"}]}
    said = Run(definition, lambda _: {"status": "denied", "result": None, "error": "too dear"}).turn()[1]
    assert said == Say(path="steps.1", text="denied: too dear")


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ({"say": "{{ length(metadata) == abs('x') }}"}, "steps[0].say"),
        ({"call": "a:b", "args": {"x": ["{{ abs('x') }}"]}}, "steps[0].args.x[0]"),
        ({"prompt": "a:b", "args": {"x": "{{ abs('x') }}"}}, "steps[0].args.x"),
        ({"call": "a:b", "if": "abs('x')"}, "steps[0].if"),
        ({"plan": ["{{ abs('x') }}"]}, "steps[0].plan[0]"),
        (
            {"parallel": [{"call": "a:b"}, {"call": "a:b", "args": {"x": "{{ abs('x') }}"}}]},
            "steps[0].parallel[1].args.x",
        ),
        ({"run": {"agent": "x", "message": "{{ abs('x') }}"}}, "steps[0].run.message"),
        ({"ask": {"questions": "{{ abs('x') }}"}}, "steps[0].ask.questions"),
        ({"fail": "{{ abs('x') }}"}, "steps[0].fail"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_expression_that_fails_ends_the_turn_and_names_its_place(step: dict[str, Any], place: str) -> None:
    (failed,) = Run({"steps": [step]}).turn()
    assert isinstance(failed, Fail)
    assert failed.path == "steps.0.error"
    assert failed.text.startswith(f"{place}: ")


def test_a_fail_step_ends_the_turn_with_its_text() -> None:
    assert Run({"steps": [{"fail": "no {{ message }}"}]}).turn() == [Fail(path="steps.0", text="no go")]
