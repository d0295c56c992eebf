"""Every clause on durable pauses has a test that exists, and every promise is about a clause that is listed."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.core.pages import ROOT, text_of
from tests.promises import KEPT_BY


def listed() -> set[str]:
    return set(re.findall(r"^- \*\*([CA]\d+)\*\*", text_of("docs/clauses.md"), re.MULTILINE))


@cache
def functions_in(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, functions)
    )


def test_every_clause_is_kept_by_a_test_and_every_promise_is_a_clause() -> None:
    assert set(KEPT_BY) == listed()
    assert len(KEPT_BY) >= 81, "clauses do not get fewer"


@pytest.mark.parametrize("clause", KEPT_BY)
def test_the_tests_of_a_clause_are_there(clause: str) -> None:
    assert KEPT_BY[clause]
    for promised in KEPT_BY[clause]:
        file, _, name = promised.partition("::")
        assert name in functions_in(file), promised
