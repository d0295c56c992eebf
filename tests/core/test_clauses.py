"""Whoever meets a clause in a comment finds what it says in docs/clauses.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.pages import ROOT, text_of

FOLDERS = ("runs", "approvals", "m3web", "templates", "static", "tests", "benchmarks")
SUFFIXES = {".py", ".js", ".css", ".html"}

# A letter and a number standing by themselves. What ends at a quotation mark, or begins at a single one, is a
# value ("A4" paper); a docstring may begin with a clause.
NUMBERED = re.compile(r"""(?<![\w%'])(?<!(?<!"")")([RCA])(\d{1,2})(?:-[RCA]?(\d{1,2}))?(?![\w%"'])""")
NAMED = re.compile(r"\b(m8tes-http|design sections?|house style) (\d+(?:\.\d+)?)(?: and (\d+))?")
WELL_FORMED = re.compile(
    r"[RCA][1-9]\d?|m8tes-http [1-9](\.[1-9]\d?)?|design section [1-9]|house style [1-9]\d?"
)


def cited_in(text: str) -> Iterator[str]:
    """Every clause that a text refers to, ranges and pairs taken apart."""
    for letter, first, last in NUMBERED.findall(text):
        yield from (f"{letter}{number}" for number in range(int(first), int(last or first) + 1))
    for name, first, second in NAMED.findall(text):
        yield from (f"{name.replace('sections', 'section')} {number}" for number in (first, second) if number)


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and not _not_ours(path) and path != Path(__file__):
                yield path


def _not_ours(path: Path) -> bool:
    return any(part == "node_modules" or part.startswith(".venv") for part in path.parts)


def listed() -> list[str]:
    return re.findall(r"^- \*\*(.+?)\*\* \S", text_of("docs/clauses.md"), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ('"""R5: kept (C1-C3; A2)."""', ["R5", "C1", "C2", "C3", "A2"]),
        ("// said twice (R3-R4, m8tes-http 1.5)", ["R3", "R4", "m8tes-http 1.5"]),
        ("design sections 5 and 6, house style 3", ["design section 5", "design section 6", "house style 3"]),
        ('size="A4", label="PARCEL A6", %C3%A9, A100', []),
    ],
)
def test_clauses_are_told_from_other_words(text: str, clauses: list[str]) -> None:
    assert list(cited_in(text)) == clauses


def test_every_clause_that_code_refers_to_is_listed() -> None:
    known = set(listed())
    unknown = {
        f"{path.relative_to(ROOT)}: {clause}"
        for path in sources()
        for clause in cited_in(path.read_text(encoding="utf-8"))
        if clause not in known
    }
    assert not unknown


def test_every_listed_clause_is_well_formed_and_listed_once() -> None:
    clauses = listed()
    assert len(clauses) > 50
    assert not [clause for clause in clauses if not WELL_FORMED.fullmatch(clause)]
    assert len(set(clauses)) == len(clauses)
    assert len(clauses) == len(re.findall(r"^- ", text_of("docs/clauses.md"), re.MULTILINE))
