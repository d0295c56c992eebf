"""What later steps see of a server's result: its value, bounded, without binary data (`runs.worker.results`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.worker.results import MAX_VALUE_BYTES, error_of, value_of

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"content": [TEXT], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [TEXT], "structuredContent": {"result": [1, 2]}}, [1, 2]),
        ({"content": [TEXT], "structuredContent": {"result": None}}, None),
        ({"content": [TEXT], "structuredContent": {"result": 1, "more": 2}}, {"result": 1, "more": 2}),
        ({"content": [TEXT], "structuredContent": {}}, {}),
        ({"content": [TEXT], "structuredContent": None}, "hello"),
        ({"content": [TEXT, {"type": "text", "text": "again"}]}, "hello\nagain"),
        ({"content": [{"type": "text", "text": ""}]}, ""),
        ({"content": []}, []),
        ({}, []),
        ({"content": [TEXT, IMAGE]}, [TEXT, {"type": "image", "mimeType": "image/png"}]),
        ({"content": "not a list"}, "not a list"),
        ({"content": [1, None]}, [1, None]),
        ({"content": [{"type": "text", "text": 5}]}, [{"type": "text", "text": 5}]),
    ],
)
def test_a_tool_is_worth_its_structured_content_else_its_text_else_its_blocks(
    raw: dict[str, Any], value: Any
) -> None:
    assert value_of("tool", raw) == value


@pytest.mark.parametrize(
    ("contents", "value"),
    [
        ([{"uri": "a:b", "text": "one"}, {"uri": "a:c", "text": "two"}], "one\ntwo"),
        ([{"uri": "a:b", "text": ""}], ""),
        (
            [{"uri": "a:b", "mimeType": "image/png", "blob": "aGVsbG8="}],
            [{"uri": "a:b", "mimeType": "image/png"}],
        ),
        ([], []),
    ],
)
def test_a_resource_is_worth_its_text_else_its_contents_without_their_data(
    contents: list[Any], value: Any
) -> None:
    assert value_of("resource", {"contents": contents}) == value


def test_a_prompt_is_worth_its_messages() -> None:
    messages = [{"role": "user", "content": TEXT}]

    assert value_of("prompt", {"messages": messages, "description": "x"}) == messages
    assert value_of("prompt", {}) == []


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def test_a_value_of_exactly_the_limit_is_kept_and_one_byte_more_is_not() -> None:
    fits = "x" * (MAX_VALUE_BYTES - 2)  # and two quotes

    assert value_of("tool", {"content": [{"type": "text", "text": fits}]}) == fits
    cut = value_of("tool", {"content": [{"type": "text", "text": fits + "x"}]})
    assert (cut["truncated"], cut["bytes"]) == (True, MAX_VALUE_BYTES + 1)
    assert fits.startswith(cut["head"])


@pytest.mark.parametrize("character", ["x", "é", "👋", '"', "\\", "\n", "\x01", "\ud800"])
def test_whatever_it_consists_of_a_cut_value_is_within_the_limit(character: str) -> None:
    text = character * (MAX_VALUE_BYTES + 1)
    for raw in ({"content": [{"type": "text", "text": text}]}, {"structuredContent": {"list": [text]}}):
        cut = value_of("tool", raw)

        assert cut["truncated"] is True
        assert cut["bytes"] > MAX_VALUE_BYTES
        assert len(cut["head"]) > 1_000
        assert size(cut) <= MAX_VALUE_BYTES


def test_the_size_of_what_was_cut_is_told_in_bytes() -> None:
    cut = value_of("tool", {"content": [{"type": "text", "text": "é" * 150_000}]})

    assert cut["bytes"] == 300_002


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"content": [{"type": "text", "text": "No such order."}]}, "No such order."),
        ({"content": [{"type": "text", "text": ""}]}, "The tool reported an error without saying which."),
        ({"content": [IMAGE]}, "The tool reported an error without saying which."),
        ({}, "The tool reported an error without saying which."),
        ({"content": [{"type": "text", "text": "x" * 20_000}]}, "x" * 10_000),
    ],
)
def test_an_error_is_told_in_the_servers_words_if_it_has_any(raw: dict[str, Any], words: str) -> None:
    assert error_of(raw) == words
