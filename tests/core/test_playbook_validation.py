"""A wrong playbook is refused with the path of each mistake (design section 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import ModelValidationError
from runs.harnesses import get_harness

PLAYBOOK = get_harness("playbook")
OPTIONS = [{"label": "enterprise", "description": "500+ seats"}, {"label": "mid-market"}]


def question(**changes: Any) -> dict[str, Any]:
    return {"question": "Which segment?", "header": "Segment", "options": OPTIONS, **changes}


def mistakes(*steps: Any) -> list[str]:
    return list(PLAYBOOK.validate({"steps": list(steps)}))


def test_every_kind_of_step_is_accepted_with_all_its_keys() -> None:
    definition = {
        "cases": [{"when": "weekly customer update", "steps": [{"say": "On it, {{ user_id }}."}]}],
        "steps": [
            {"say": "Hello", "if": "message == 'hi'", "required": True},
            {
                "call": "desk:find",
                "args": {"name": "{{ message }}", "n": [1, {"deep": "{{ user_id }}"}]},
                "as": "f",
            },
            {"prompt": "desk:letter", "args": {"to": "{{ f.result.email }}"}, "as": "l"},
            {"read": "desk:file:///customers/1", "as": "r"},
            {"ask": {"questions": [question()], "blocking": False}, "as": "a"},
            {"ask": {"questions": [question(options="{{ f.result.rows[].{label: name} }}")]}},
            {"ask": {"questions": "{{ f.result.questions }}"}},
            {"ask": {"questions": [{"question": "What else?", "header": "Else"}]}},
            {"plan": ["first", "second"], "as": "p"},
            {"parallel": [{"call": "desk:a", "if": "f", "as": "x"}, {"call": "desk:b", "required": True}]},
            {"run": {"agent": "helper", "message": "do {{ message }}"}, "as": "child"},
            {"sleep": 0.2},
            {"fail": "no {{ message }}", "if": "f.error"},
            {"finish": "done"},
        ],
        "replies": [[{"say": "again"}], []],
    }
    assert PLAYBOOK.validate(definition) == []


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (5, "steps[0]: must be an object"),
        ({}, "steps[0]: is no known step (it has nothing)"),
        ({"cal": "a:b"}, "steps[0]: is no known step (it has 'cal')"),
        ({"call": "a:b", "say": "x"}, "steps[0]: has several kinds (say, call)"),
        ({"say": "x", "args": {}}, "steps[0]: unknown key 'args'"),
        ({"say": 5}, "steps[0].say: must be text"),
        ({"say": "{{ a b }}"}, "steps[0].say: a b is not JMESPath"),
        ({"say": "{{ }}"}, "steps[0].say: the expression is empty"),
        ({"say": "{{ open"}, "steps[0].say: an expression that starts with {{ has no }}"),
        ({"call": "refund"}, 'steps[0].call: must be "server:name"'),
        ({"call": ":refund"}, 'steps[0].call: must be "server:name"'),
        ({"call": "desk:"}, 'steps[0].call: must be "server:name"'),
        ({"call": None}, 'steps[0].call: must be "server:name"'),
        ({"call": "desk:{{ x }}"}, "steps[0].call: must be written out"),
        ({"call": "a:b", "args": []}, "steps[0].args: must be an object"),
        ({"call": "a:b", "args": {"x": [{"y": "{{ ( }}"}]}}, "steps[0].args.x[0].y: ( is not JMESPath"),
        ({"call": "a:b", "as": "9x"}, "steps[0].as: must be a name"),
        ({"call": "a:b", "as": "message"}, "steps[0].as: the name message is taken"),
        ({"call": "a:b", "as": "user_id"}, "steps[0].as: the name user_id is taken"),
        ({"call": "a:b", "as": "metadata"}, "steps[0].as: the name metadata is taken"),
        ({"call": "a:b", "if": True}, "steps[0].if: must be a JMESPath expression"),
        ({"call": "a:b", "if": "{{ x }}"}, "steps[0].if: is an expression by itself"),
        ({"call": "a:b", "if": "x ="}, "steps[0].if: x = is not JMESPath"),
        ({"call": "a:b", "required": "yes"}, "steps[0].required: must be true or false"),
        ({"prompt": "a:b", "args": {"x": 1}}, "steps[0].args.x: must be text"),
        ({"read": "file"}, 'steps[0].read: must be "server:name"'),
        ({"plan": []}, "steps[0].plan: must be a list of at least one text"),
        ({"plan": "one"}, "steps[0].plan: must be a list of at least one text"),
        ({"plan": ["ok", " "]}, "steps[0].plan[1]: must not be empty"),
        ({"parallel": []}, "steps[0].parallel: must be a list of at least one call"),
        ({"parallel": [{"parallel": []}]}, "steps[0].parallel[0]: parallel takes calls only, not parallel"),
        ({"parallel": [{"say": "x"}]}, "steps[0].parallel[0]: parallel takes calls only, not say"),
        ({"parallel": [{"call": "a:b"}, {"call": "a"}]}, 'steps[0].parallel[1].call: must be "server:name"'),
        ({"parallel": [{"call": "a:b"}], "as": "x"}, "steps[0]: unknown key 'as'"),
        ({"run": "helper"}, "steps[0].run: must be an object with agent and message"),
        ({"run": {"agent": " ", "message": "x"}}, "steps[0].run.agent: must be the name of an agent"),
        ({"run": {"agent": "a"}}, "steps[0].run.message: must be text"),
        ({"sleep": -1}, "steps[0].sleep: must be a number of seconds from 0 to 86,400"),
        ({"sleep": 86_401}, "steps[0].sleep: must be a number of seconds"),
        ({"sleep": True}, "steps[0].sleep: must be a number of seconds"),
        ({"sleep": "1s"}, "steps[0].sleep: must be a number of seconds"),
        ({"fail": None}, "steps[0].fail: must be text"),
        ({"finish": ["x"]}, "steps[0].finish: must be text"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_mistake_in_a_step_is_named_with_its_path(step: Any, line: str) -> None:
    assert any(found.startswith(line) for found in mistakes(step)), mistakes(step)


@pytest.mark.parametrize(
    ("questions", "line"),
    [
        (None, "steps[0].ask.questions: must be a list of 1 to 4 questions"),
        ([], "steps[0].ask.questions: must be a list of 1 to 4 questions"),
        ([question(question=f"q{n}") for n in range(5)], "steps[0].ask.questions: must be a list of 1 to 4"),
        (["Which?"], "steps[0].ask.questions[0]: must be an object"),
        ([question(question="")], "steps[0].ask.questions[0].question: must not be empty"),
        ([question(header=None)], "steps[0].ask.questions[0].header: must be text"),
        (
            [question(header="Plan Approval")],
            'steps[0].ask.questions[0].header: "Plan Approval" is kept for plans',
        ),
        ([question(multiSelect="yes")], "steps[0].ask.questions[0].multiSelect: must be true or false"),
        ([question(multiSelect=True, options=[])], "steps[0].ask.questions[0].multiSelect: needs options"),
        (
            [question(options=[{"label": "only"}])],
            "steps[0].ask.questions[0].options: must be a list of 2 to 50",
        ),
        (
            [question(options=["a", "b"])],
            "steps[0].ask.questions[0].options[0]: must be an object with a label",
        ),
        (
            [question(options=[{"label": "a"}, {"label": "a"}])],
            "steps[0].ask.questions[0].options: the label 'a'",
        ),
        (
            [question(options=[{"label": "a"}, {"label": 2}])],
            "steps[0].ask.questions[0].options[1].label: must be",
        ),
        ([question(options="{{ ( }}")], "steps[0].ask.questions[0].options: ( is not JMESPath"),
        ([question(extra=1)], "steps[0].ask.questions[0]: unknown key 'extra'"),
        (
            [question(), question()],
            "steps[0].ask.questions: the question 'Which segment?' stands there twice",
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_mistake_in_a_question_is_named_with_its_path(questions: Any, line: str) -> None:
    found = mistakes({"ask": {"questions": questions}})
    assert any(entry.startswith(line) for entry in found), found


@pytest.mark.parametrize(
    ("definition", "line"),
    [
        ([], "playbook: must be an object"),
        ("steps", "playbook: must be an object"),
        ({}, "playbook: needs steps, cases or both"),
        ({"cases": []}, "playbook: needs steps, cases or both"),
        ({"step": []}, "playbook: unknown key 'step'"),
        ({"steps": {}}, "steps: must be a list of steps"),
        ({"cases": {}}, "cases: must be a list of objects with when and steps"),
        ({"cases": [1]}, "cases[0]: must be an object with when and steps"),
        ({"cases": [{"when": "x", "steps": [], "then": 1}]}, "cases[0]: unknown key 'then'"),
        ({"cases": [{"when": " ", "steps": []}]}, "cases[0].when: must be text"),
        ({"cases": [{"when": "x"}]}, "cases[0].steps: is missing"),
        ({"cases": [{"when": "x", "steps": [{"say": 1}]}]}, "cases[0].steps[0].say: must be text"),
        ({"steps": [], "replies": {}}, "replies: must be a list of lists of steps"),
        ({"steps": [], "replies": [{"say": "x"}]}, "replies[0]: must be a list of steps"),
        ({"steps": [], "replies": [[], [{"say": 1}]]}, "replies[1][0].say: must be text"),
        ({"steps": [{"say": float("nan")}]}, "steps[0].say: Must be a finite number."),
        ({"steps": [{"say": "half \ud800"}]}, "steps[0].say: Has half a character"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_mistake_around_the_steps_is_named_with_its_path(definition: Any, line: str) -> None:
    found = PLAYBOOK.validate(definition)
    assert any(entry.startswith(line) for entry in found), found


def test_a_name_is_given_once_in_a_list_of_steps_but_may_return_in_another() -> None:
    call = {"call": "a:b", "as": "x"}
    assert mistakes(call, {"parallel": [call]}) == [
        "steps[1].parallel[0].as: an earlier step has the name 'x' already"
    ]
    assert PLAYBOOK.validate({"steps": [call], "replies": [[call]]}) == []


def test_all_mistakes_are_reported_together_but_never_more_than_fifty() -> None:
    assert len(mistakes({"say": 1}, {"sleep": -1}, {"call": "x", "args": 1})) == 4
    assert len(mistakes(*[{"say": 1}] * 200)) == 50


def test_size_number_of_steps_and_nesting_are_bounded() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    endless: Any = {}
    for _ in range(5_000):
        endless = {"a": endless}
    assert mistakes({"say": "x" * 200_000}) == ["playbook: has 200,022 bytes; at most 200,000 are allowed"]
    assert mistakes(*[{"say": "x"}] * 501) == ["playbook: has 501 steps; at most 500 are allowed"]
    assert mistakes({"call": "a:b", "args": {"x": deep}}) == ["playbook: is nested more than 30 levels deep"]
    assert "nested more than 100 levels" in mistakes({"call": "a:b", "args": endless})[0]


def test_the_targets_of_all_lists_and_groups_are_found() -> None:
    definition = {
        "cases": [{"when": "x", "steps": [{"call": "a:one"}]}],
        "steps": [{"parallel": [{"call": "b:two"}]}, {"prompt": "c:three"}, {"read": "d:file:///four"}],
        "replies": [[{"call": "e:five"}]],
    }
    assert PLAYBOOK.targets(definition) == {"a:one", "b:two", "c:three", "d:file:///four", "e:five"}


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("{}a:. ", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["steps", "cases", "replies", "when", "call", "ask", "questions", "plan", "parallel", "if"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(json_like)
def test_no_definition_breaks_the_validation_and_every_mistake_has_a_path(definition: Any) -> None:
    for line in PLAYBOOK.validate(definition):
        assert line.startswith(("playbook", "steps", "cases", "replies"))
        assert ": " in line
    if isinstance(definition, dict):
        PLAYBOOK.targets(definition)


def test_an_unknown_harness_is_refused_with_the_known_names() -> None:
    with pytest.raises(ModelValidationError, match="Known: playbook"):
        get_harness("nope")
