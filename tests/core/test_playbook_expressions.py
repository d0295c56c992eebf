"""`{{ JMESPath }}` in texts and arguments (design section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from runs.harnesses.playbook_expressions import TemplateError, holds, render, render_text

ENV: dict[str, Any] = {
    "message": "hello",
    "user_id": None,
    "metadata": {"n": 5, "list": [1, "x"], "yes": True},
    "x": {"status": "done", "result": {"b": 1, "a": "é"}, "error": None},
    "evil": "{{ message }}",
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ metadata.n }}", 5),
        ("{{metadata.yes}}", True),
        ("{{ user_id }}", None),
        ("{{ missing.deep }}", None),
        ("{{ x.result }}", {"b": 1, "a": "é"}),
        ("{{ {a: {b: metadata.n}} }}", {"a": {"b": 5}}),
        ("{{ {a: {b: metadata.n}}}}", {"a": {"b": 5}}),
        ("{{ '}}' }}", "}}"),
        ('{{ `{"a": "}}"}` }}', {"a": "}}"}),
        ("plain", "plain"),
        (" {{ metadata.n }}", " 5"),
        ("{{ metadata.n }}{{ metadata.n }}", "55"),
    ],
)
def test_a_text_that_is_only_an_expression_keeps_its_json_type(template: str, value: object) -> None:
    rendered = render(template, ENV, "here")
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Dear {{ message }}!", "Dear hello!"),
        ("[{{ user_id }}]", "[]"),
        ("n={{ metadata.n }}, yes={{ metadata.yes }}", "n=5, yes=true"),
        ("{{ x.result }}.", '{"a":"é","b":1}.'),
        ("{{ metadata.list }}", '[1,"x"]'),
        ("{{ evil }}", "{{ message }}"),
    ],
)
def test_in_a_text_null_is_empty_and_objects_are_json(template: str, text: str) -> None:
    assert render_text(template, ENV, "here") == text


def test_what_an_expression_yields_is_never_read_as_a_template() -> None:
    assert render({"a": "{{ evil }}", "b": "say {{ evil }}"}, ENV, "here") == {
        "a": "{{ message }}",
        "b": "say {{ message }}",
    }


def test_templates_are_filled_in_at_any_depth_and_other_values_stay() -> None:
    value = {"a": [{"b": "{{ metadata.n }}"}], "c": 1.5, "d": None}
    assert render(value, ENV, "args") == {"a": [{"b": 5}], "c": 1.5, "d": None}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ length(metadata.n) }}", "length(metadata.n) failed"),
        ("{{ nope(message) }}", "failed: Unknown function"),
        ("{{ &message }}", "the value is not JSON"),
        ("{{ `NaN` }}", "the value is not JSON"),
        ("{{ ( }}", "is not JMESPath"),
    ],
)
def test_an_expression_that_fails_names_its_place(template: str, why: str) -> None:
    with pytest.raises(TemplateError) as in_value:
        render({"a": ["ok", template]}, ENV, "steps[1].args")
    with pytest.raises(TemplateError) as in_text:
        render_text(f"text {template}", ENV, "steps[1].say")
    assert str(in_value.value).startswith("steps[1].args.a[1]: ")
    assert str(in_text.value).startswith("steps[1].say: ")
    assert why in str(in_value.value)
    assert why in str(in_text.value)


def test_what_a_template_grows_to_is_bounded() -> None:
    env = {"big": "x" * 600_000}
    for template in ("{{ [big, big] }}", "{{ big }}{{ big }}"):
        with pytest.raises(TemplateError, match="longer than 1,000,000 characters"):
            render(template, env, "here")


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("message", True),
        ("metadata.n == `5`", True),
        ("metadata.n == `6`", False),
        ("`0`", True),
        ("''", False),
        ("`[]`", False),
        ("`{}`", False),
        ("`false`", False),
        ("missing", False),
        ("!missing && x.status == 'done'", True),
    ],
)
def test_an_if_holds_as_jmespath_sees_truth(expression: str, truth: bool) -> None:
    assert holds(expression, ENV, "here") is truth
