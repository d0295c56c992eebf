"""The forms end to end: schema -> HTML -> what a browser would post -> content -> the store's validator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from approvals.forms import ElicitationForm, arguments_form
from runs.schema_check import validate
from tests.pages.form_page import Page, fill, query

CORPUS = json.loads((Path(__file__).parents[1] / "core" / "corpus" / "forms.json").read_text())


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["name"])
def test_the_page_and_the_validator_of_the_store_agree(case: dict[str, Any]) -> None:
    assert (validate(case["schema"], case["content"]) == []) is case["valid"]
    if "typed" not in case:
        return
    form = ElicitationForm(case["schema"], prefix="r0")
    answered = ElicitationForm(case["schema"], data=query(fill(form, case["typed"])), prefix="r0")
    assert answered.is_valid() is case["valid"], answered.error_summary
    if case["valid"]:
        assert json.dumps(answered.content, sort_keys=True) == json.dumps(case["content"], sort_keys=True)
    else:
        assert answered.error_summary


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["name"])
def test_every_form_is_sound_markup_that_schema_text_cannot_reach(case: dict[str, Any]) -> None:
    form = ElicitationForm(case["schema"], prefix="r0")
    bound = ElicitationForm(case["schema"], data=fill(form, case.get("typed", {})), prefix="r0")
    for page in (Page(str(form)), Page(str(bound))):
        assert len(page.ids) == len(set(page.ids))
        assert set(page.fors) <= set(page.ids)
        assert set(page.described) <= set(page.ids)
        assert all(name.startswith("r0-f") for name in (c["name"] for c in page.controls))
        assert "script" not in page.tags
        assert "a" not in page.tags
    assert {anchor for anchor, _ in bound.error_summary} <= set(Page(str(bound)).ids)


WIDE = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "many": {"type": "array", "items": {"enum": ["a", "b"]}},
        "news": {"type": "boolean"},
        "color": {"enum": ["r", "g"]},
        "long": {"enum": list(range(20))},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer"},
        "x": {"type": "object"},
    },
}


def test_a_form_that_nobody_touched_sends_nothing() -> None:
    data = Page(str(ElicitationForm(WIDE, prefix="r0"))).posted()
    form = ElicitationForm(WIDE, data=query(data), prefix="r0")
    assert form.is_valid()
    assert form.content == {}


def test_defaults_are_shown_and_sent() -> None:
    defaults = {
        "note": "two\nlines",
        "many": ["b"],
        "news": False,
        "color": "g",
        "long": 12,
        "day": "2026-02-03",
        "at": "2026-02-03T04:05:06.5+07:00",
        "n": 0,
        "x": {"a": [1, 2.5]},
    }
    properties = {name: {**part, "default": defaults[name]} for name, part in WIDE["properties"].items()}
    schema = {**WIDE, "properties": properties}
    form = ElicitationForm(schema, prefix="r0")
    answered = ElicitationForm(schema, data=query(Page(str(form)).posted()), prefix="r0")
    assert answered.is_valid()
    assert answered.content == defaults


def test_a_default_that_the_schema_refuses_is_ignored() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "default": "many"},
            "c": {"enum": ["a"], "default": "z"},
            "m": {"type": "string", "format": "email", "default": "nobody"},
            "b": {"type": "boolean", "default": "yes"},
        },
    }
    assert Page(str(ElicitationForm(schema, prefix="r0"))).posted() == {
        "r0-f0": [""],
        "r0-f1": [""],
        "r0-f2": [""],
        "r0-f3": [""],
    }


def test_a_required_boolean_is_two_radios_with_none_chosen() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    page = Page(str(ElicitationForm(schema, prefix="r0")))
    assert [(c["type"], c["value"], "checked" in c) for c in page.controls] == [
        ("radio", "true", False),
        ("radio", "false", False),
    ]


def test_an_optional_boolean_offers_no_answer() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    page = Page(str(ElicitationForm(schema, prefix="r0")))
    assert [(c["value"], "checked" in c) for c in page.controls] == [
        ("true", False),
        ("false", False),
        ("", True),
    ]


def test_a_long_choice_is_a_select_with_nothing_chosen_when_required() -> None:
    schema = {"type": "object", "properties": {"n": {"enum": list(range(8))}}, "required": ["n"]}
    page = Page(str(ElicitationForm(schema, prefix="r0")))
    assert [c["type"] for c in page.controls] == ["select"]
    assert page.posted() == {"r0-f0": [""]}


def test_wrong_answers_keep_what_was_typed_and_are_named_in_summary_and_field_alike() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "title": "Amount"},
            "day": {"type": "string", "format": "date", "title": "Day"},
        },
    }
    form = ElicitationForm(schema, data={"r0-f0": "1,5", "r0-f1": "tomorrow"}, prefix="r0")
    assert not form.is_valid()
    page = Page(str(form))
    assert page.posted() == {"r0-f0": ["1,5"], "r0-f1": ["tomorrow"]}
    assert [c.get("aria-invalid") for c in page.controls] == ["true", "true"]
    assert [anchor for anchor, _ in form.error_summary] == ["id_r0-f0", "id_r0-f1"]
    shown = "".join(page.text)
    for _, message in form.error_summary:
        assert message in shown
    assert form.error_summary[0][1].startswith("Amount: Use a point for decimals")


def test_a_slip_in_json_is_named_with_line_and_column() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "object"}}}
    form = ElicitationForm(schema, data={"r0-f0": '{\r\n  "a": 1,\r\n}'}, prefix="r0")
    assert not form.is_valid()
    assert "This is not JSON. Line 3, column 1:" in form.error_summary[0][1]


def test_a_draft_comes_back_as_typed_without_being_judged() -> None:
    form = ElicitationForm(WIDE, initial={"r0-f0": "unfinish", "r0-f1": ["1"], "r0-f7": "x"}, prefix="r0")
    posted = Page(str(form)).posted()
    assert (posted["r0-f0"], posted["r0-f1"], posted["r0-f7"]) == (["unfinish"], ["1"], ["x"])
    assert form.error_summary == []


def test_the_requests_of_one_round_do_not_read_each_other() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    data = query({"r0-f0": ["first"], "r1-f0": ["second"], "r10-f0": ["third"]})
    contents = [ElicitationForm(schema, data=data, prefix=prefix).content for prefix in ("r0", "r1", "r10")]
    assert contents == [{"a": "first"}, {"a": "second"}, {"a": "third"}]


def test_a_schema_that_cannot_be_used_gives_a_form_that_says_so_and_is_never_valid() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.org/schema"}}}
    form = ElicitationForm(schema, data={}, prefix="r0")
    assert not form.is_valid()
    assert form.problem is not None
    assert "not inside it" in form.problem
    assert "This form cannot be shown" in str(form)


def test_text_of_a_server_is_never_markup_and_hides_nothing() -> None:
    evil = '<img src=x onerror="alert(1)"></textarea><a href="https://evil.example">click</a>\u202e'
    schema = {
        "type": "object",
        "title": evil,
        "properties": {
            evil: {
                "type": "string",
                "title": evil,
                "description": evil,
                "default": evil,
                "pattern": "^(?!x)",
            },
            "c": {"title": evil, "oneOf": [{"const": evil, "title": evil}]},
            "d": {"title": evil, "enum": [f"{evil}{n}" for n in range(9)]},
            "e": {"title": evil, "type": "array", "items": {"enum": [evil]}, "description": evil},
            "f": {"title": evil, "type": "object", "default": {evil: evil}},
        },
    }
    html = str(ElicitationForm(schema, data={"r0-f1": "9"}, prefix="r0"))
    unbound = str(ElicitationForm(schema, prefix="r0"))
    for page_text in (html, unbound):
        page = Page(page_text)
        assert {"img", "a"}.isdisjoint(page.tags)
        assert "\u202e" not in page_text
        assert "⟨U+202E⟩" in page_text
        assert "written out" in page_text


def test_editing_arguments_without_touching_anything_changes_nothing() -> None:
    arguments = {
        "note": "",
        "many": ["b", "a"],
        "news": None,
        "color": "g",
        "long": 3.0,
        "day": "someday",
        "at": "2026-02-03t04:05:00Z",
        "n": 1.0,
        "x": {"deep": [1, {"y": None}]},
        "unknown": {"kept": True},
        "hidden\u200b": "\u202eabc",
    }
    form = arguments_form(WIDE, arguments)
    data = Page(str(form)).posted()
    # A browser shortens a time whose seconds are zero.
    data = {name: [v.removesuffix(":00") if "T04:05" in v else v for v in vs] for name, vs in data.items()}
    for row in form.rows:
        assert "\u202e" not in row.text
    edited = arguments_form(WIDE, arguments, data=query(data))
    assert edited.errors.get("f2"), "null is no boolean in this schema, so only that is refused"
    assert edited.errors.keys() == {"f2", "f5"}

    good = {name: value for name, value in arguments.items() if name not in ("news", "day")}
    data = Page(str(arguments_form(WIDE, good))).posted()
    kept = arguments_form(WIDE, good, data=query(data))
    assert kept.is_valid(), kept.error_summary
    assert json.dumps(kept.content, sort_keys=True) == json.dumps(good, sort_keys=True)


def test_edited_arguments_keep_their_json_types() -> None:
    schema = {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "maximum": 100},
            "customer": {"type": "object"},
            "dry": {"type": "boolean", "default": True},
        },
        "required": ["amount"],
    }
    arguments = {"amount": 12.5, "customer": {"id": 7}, "trace": "t1"}
    form = arguments_form(schema, arguments)
    assert [row.field.label for row in form.rows] == ["amount", "customer", "dry", "Other arguments"]
    data = Page(str(form)).posted()
    data["a-f0"] = ["50"]
    edited = arguments_form(schema, arguments, data=query(data))
    assert edited.is_valid()
    assert edited.content == {"amount": 50, "customer": {"id": 7}, "trace": "t1"}
    data["a-f0"] = ["500"]
    refused = arguments_form(schema, arguments, data=query(data))
    assert [message for _, message in refused.error_summary] == ["amount: Must be 100 or less."]


def test_other_arguments_cannot_smuggle_in_a_field_of_the_form() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    data = {"a-f0": "5", "a-other": '{"amount": 5000}'}
    form = arguments_form(schema, {"amount": 5, "trace": 1}, data=data)
    assert not form.is_valid()
    assert "has a field of its own" in form.error_summary[0][1]
