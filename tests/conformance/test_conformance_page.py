"""docs/conformance.md says what is tested, no more and no less."""

from __future__ import annotations

import json
import re

from tests.conformance.scenarios import NEXT, RELEASE, ROOT, SCENARIOS

PAGE = (ROOT / "docs" / "conformance.md").read_text()
PINS = json.loads((ROOT / "tests" / "node" / "package.json").read_text())["dependencies"]
VERSIONS = {package: PINS[package].rpartition("@")[2] for package in (RELEASE, NEXT)}


def test_the_page_lists_the_scenarios_that_run_with_their_version_and_result() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| ([^ ]+) \| .+ \| (\d+) passed(?:, (\d+) not ours)? \|$", PAGE, re.MULTILINE
    )
    assert rows == [
        (
            scenario.name,
            VERSIONS[scenario.package],
            str(scenario.checks),
            str(len(scenario.not_ours) or ""),
        )
        for scenario in SCENARIOS
    ]


def test_the_page_names_the_checks_that_are_not_ours() -> None:
    for scenario in SCENARIOS:
        for check in scenario.not_ours:
            assert f"`{check}`" in PAGE


def test_the_command_on_the_page_is_a_target_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"^make ([a-z-]+)", PAGE, re.MULTILINE)
    assert commands
    assert set(commands) <= set(targets)
