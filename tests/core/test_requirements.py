"""A test whose browser, node or service is missing is skipped loudly, and fails where everything is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest
from tests.requirements import require

@pytest.fixture(scope="module")
def oven():
    require(False, "an oven")

def test_bread(oven): ...
def test_cake(oven): ...
def test_salad(): require(False, "a garden")
def test_water(): require(True, "a tap")
"""


def outcome(folder: Path, require_all: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_meals.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.requirements", "-p", "no:django", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "M3_REQUIRE_ALL": require_all},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("require_all", ["", "0"])
def test_the_summary_has_one_line_for_each_missing_thing(tmp_path: Path, require_all: str) -> None:
    ended = outcome(tmp_path, require_all)
    assert ended.returncode == 0
    assert "1 passed, 3 skipped" in ended.stdout
    assert [line for line in ended.stdout.splitlines() if "NOT RUN" in line] == [
        "1 test was NOT RUN, missing: a garden",
        "2 tests were NOT RUN, missing: an oven",
    ]


def test_where_everything_is_required_a_missing_thing_is_a_failure(tmp_path: Path) -> None:
    ended = outcome(tmp_path, "1")
    assert ended.returncode == 1
    assert "skipped" not in ended.stdout
    assert "missing: a garden" in ended.stdout
    assert "missing: an oven" in ended.stdout
