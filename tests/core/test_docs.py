"""README and docs/ hold together: links, names, commands, settings and dependencies are those of the code."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands

from m3web import config
from tests.core.pages import PAGES, ROOT, code, examples, resolve, rows, section, text_of

EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


# --- every page -----------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EACH_PAGE
def test_every_link_to_a_file_or_heading_of_ours_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@EACH_PAGE
def test_a_page_names_no_machine_of_ours(page: Path) -> None:
    found = re.findall(r"(?<![\w.])/(?:work|root|tmp|home)\b", page.read_text(encoding="utf-8"))
    assert not found


@EACH_PAGE
def test_every_name_of_our_code_exists(page: Path) -> None:
    names = re.findall(r"`((?:runs|approvals|m3web)(?:\.(?!sqlite3)\w+)+)`", page.read_text(encoding="utf-8"))
    for name in names:
        assert resolve(name) is not None


@EACH_PAGE
def test_every_make_target_and_command_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    assert set(re.findall(r"manage\.py (\w+)", text)) <= get_commands().keys()


def test_the_readme_shows_the_two_commands_and_names_every_folder() -> None:
    assert {"make up", "make test"} <= set(
        re.findall(r"^```\n(.+)\n```$", text_of("README.md"), re.MULTILINE)
    )
    named = {folder for row in rows(section("README.md", "## What is where")) for folder in code(row[0])}
    assert all((ROOT / folder).is_dir() for folder in named)
    assert {"m3web/", "runs/", "approvals/", "templates/", "static/", "tests/", "docs/"} <= named


def test_the_readme_leads_to_every_page_of_docs() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in text_of("README.md")


# --- settings -------------------------------------------------------------------------------------------------


class Asked(dict[str, str]):
    """An environment that remembers what was looked up in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def settings_table() -> dict[str, str]:
    return {code(row[0])[0]: row[1] for row in rows(section("README.md", "## Settings"))}


def test_the_settings_table_lists_what_the_code_reads(tmp_path: Path) -> None:
    environment = Asked()
    config.load(tmp_path, environment)
    assert settings_table().keys() == environment.names


def test_a_default_in_the_settings_table_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    without = asdict(config.load(tmp_path, {}))
    defaults = {name: cell for name, cell in settings_table().items() if re.fullmatch(r"`[^`]+`", cell)}
    assert len(defaults) > 8
    for name, cell in defaults.items():
        assert asdict(config.load(tmp_path, {name: cell.strip("`")})) == without, name


def test_the_example_of_stdio_servers_is_accepted(tmp_path: Path) -> None:
    [(_, example)] = examples("README.md")
    read = config.load(tmp_path, {"M3_STDIO_SERVERS": example})
    assert not read.problems
    assert read.stdio_servers == json.loads(example)


# --- dependencies -----------------------------------------------------------------------------------------------


def test_every_dependency_has_its_reason_and_nothing_else_has() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))
    extras = [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    wanted = [*project["project"]["dependencies"], *extras, *project["dependency-groups"]["dev"]]
    table = [code(row[0])[0] for row in rows(text_of("docs/dependencies.md"))]
    assert sorted(table) == sorted(re.split(r"[\[<>=]", line)[0] for line in wanted)
