"""Reading README and docs/ for tests: sections, tables, examples, and the code behind a name."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    """The text under a heading, up to the next of the same or a higher level."""
    level, _, title = heading.partition(" ")
    found = re.search(
        rf"^{level} {re.escape(title)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)",
        text_of(name),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"{name} has no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without their headings."""
    lines = re.findall(r"^\|(.+)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    rules = {at for at, row in enumerate(cells) if all(set(cell) == {"-"} for cell in row)}
    return [row for at, row in enumerate(cells) if at not in rules and at + 1 not in rules]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def examples(name: str, language: str = "json") -> list[tuple[str, str]]:
    """(what it is an example of, its text) of every fenced block of a language."""
    return re.findall(rf"^```{language} ?(\w*)\n(.*?)^```$", text_of(name), re.MULTILINE | re.DOTALL)


def resolve(name: str) -> Any:
    """The module, class or function behind a dotted name; raises if there is none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)
