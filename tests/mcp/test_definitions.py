"""Listing a server: everything good is found, everything bad is named, nothing is unbounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import HttpBinding, Inspection, StdioBinding, identity, inspect
from runs.mcp_client.mapping import tool_from_wire
from tests.mcp.bindings import PATIENCE, raw

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


@pytest.fixture
def listing(tmp_path: Path) -> Any:
    async def look(*tools: Any, generation: str = "modern", option: str = "all") -> Inspection:
        file = tmp_path / "tools.json"
        file.write_text(json.dumps(tools))
        return await inspect(raw(generation, f"tools={file}", option), timeout=PATIENCE)

    return look


async def test_tools_prompts_and_resources_are_all_listed(playground: HttpBinding) -> None:
    found = await inspect(playground, timeout=PATIENCE)
    assert {"echo", "many_keys", "slow"} <= {tool.name for tool in found.tools}
    assert [prompt.name for prompt in found.prompts] == ["greeting"]
    assert [(r.uri, r.is_template) for r in found.resources] == [("notes://{day}", True)]
    assert (found.server_name, found.server_version) == ("playground", "0.9")
    assert found.instructions == "Every tool does one odd thing."
    assert found.problems == ()


async def test_five_hundred_tools_are_listed_page_by_page(listing: Any) -> None:
    found = await listing(*({**GOOD, "name": f"t{n}"} for n in range(500)), option="all")
    assert len(found.tools) == 500
    paged = await listing(*({**GOOD, "name": f"t{n}"} for n in range(60)), option="paged")
    assert len(paged.tools) == 60


async def test_more_than_a_thousand_tools_are_cut_off(listing: Any) -> None:
    found = await listing(*({**GOOD, "name": f"t{n}"} for n in range(1001)))
    assert len(found.tools) == 1000
    assert any("more than 1000" in problem for problem in found.problems)


async def test_a_list_that_never_ends_is_left(listing: Any) -> None:
    found = await listing(GOOD, option="circular")
    assert [tool.name for tool in found.tools] == ["good"]
    assert any("does not end" in problem for problem in found.problems)


@pytest.mark.parametrize("generation", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("not an object", "without a name"),
        ({"inputSchema": {"type": "object"}}, "without a name"),
        ({"name": "bad\x1b[2J", "inputSchema": {"type": "object"}}, "unusable name"),
        ({"name": "n" * 300, "inputSchema": {"type": "object"}}, "unusable name"),
        ({"name": "bad"}, "“bad” has an input schema"),
        ({"name": "bad", "inputSchema": {"type": "string"}}, "“bad” has an input schema"),
        ({"name": "bad", "inputSchema": {"type": "object", "properties": [1]}}, "“bad” has an input schema"),
        ({"name": "bad", "inputSchema": {"type": "object"}, "outputSchema": 7}, "“bad” has an output schema"),
        ({"name": "bad", "inputSchema": {"type": "object"}, "description": "d" * 300_000}, "over 256 KB"),
        (GOOD, "listed twice"),
    ],
)
async def test_a_bad_definition_is_named_and_hides_no_other(
    listing: Any, generation: str, bad: Any, words: str
) -> None:
    found = await listing(GOOD, bad, {**GOOD, "name": "last"}, generation=generation)
    assert {tool.name for tool in found.tools} == {"good", "last"}
    assert [words in problem for problem in found.problems] == [True]


async def test_a_schema_that_cannot_be_checked_is_named_and_its_tool_kept(listing: Any) -> None:
    found = await listing(
        {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}}
    )
    assert [tool.name for tool in found.tools] == ["odd"]
    assert "cannot be checked" in found.problems[0]


async def test_a_tool_that_maps_arguments_to_headers_wrongly_is_left_out_by_the_modern_rule(
    listing: Any,
) -> None:
    wrong = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "not a token"}}}
    found = await listing({"name": "bad", "inputSchema": wrong}, GOOD)
    assert [tool.name for tool in found.tools] == ["good"]
    kept = await listing({"name": "bad", "inputSchema": wrong}, GOOD, generation="legacy")
    assert len(kept.tools) == 2


async def test_a_definition_keeps_what_its_server_says_of_it(listing: Any) -> None:
    annotations = {"readOnlyHint": True, "title": "From the annotations", "vendor": 1}
    found = await listing({**GOOD, "description": "<b>Reads</b>", "annotations": annotations})
    (tool,) = found.tools
    assert (tool.title, tool.description) == ("From the annotations", "<b>Reads</b>")
    assert tool.annotations == annotations


def test_the_digest_covers_name_description_and_schemas_and_nothing_else() -> None:
    base = {**GOOD, "description": "d", "outputSchema": {"type": "object"}}
    first = tool_from_wire(base).digest
    for change in (
        {"name": "b"},
        {"description": "e"},
        {"inputSchema": {"type": "object", "x": 1}},
        {"outputSchema": None},
    ):
        assert tool_from_wire({**base, **change}).digest != first
    assert tool_from_wire({**base, "title": "T", "annotations": {"readOnlyHint": True}}).digest == first


def test_identity_is_the_command_with_its_arguments_or_the_url() -> None:
    base = StdioBinding(command="run", args=("a", "b"))
    assert identity(base) == identity(StdioBinding(command="run", args=("a", "b"), env={"K": "v"}, cwd="/"))
    assert identity(base) != identity(StdioBinding(command="run", args=("a b",)))
    assert identity(HttpBinding(url="https://a/x")) == identity(
        HttpBinding(url="https://a/x", headers={"Authorization": "1"})
    )
    assert identity(HttpBinding(url="https://a/x")) != identity(HttpBinding(url="https://a/y"))


def test_secrets_do_not_show_in_the_repr_of_a_binding() -> None:
    assert "s3cret" not in repr(HttpBinding(url="https://a/x", headers={"Authorization": "s3cret"}))
    assert "s3cret" not in repr(StdioBinding(command="x", env={"TOKEN": "s3cret"}))
