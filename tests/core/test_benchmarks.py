"""The arithmetic and the tables of the benchmarks, on given numbers; what they measure is never asserted."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks
from benchmarks.figures import Report, Series, percentile, ratio_table, short, table
from benchmarks.installation import own_environment
from benchmarks.prepare import PLAYBOOKS
from runs.harnesses import get_harness

ROOT = Path(__file__).resolve().parents[2]
MODULES = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_loads_without_starting_anything(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__
    assert capfd.readouterr() == ("", "")


def test_every_benchmark_can_be_chosen_by_its_name() -> None:
    known = importlib.import_module("benchmarks.__main__").BENCHMARKS
    measuring = {name for name in MODULES if hasattr(importlib.import_module(f"benchmarks.{name}"), "Report")}
    assert known.keys() == measuring - {"__main__", "figures"}


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_the_playbooks_of_the_benchmarks_are_valid(name: str) -> None:
    assert list(get_harness("playbook").validate(PLAYBOOKS[name])) == []


def test_a_benchmark_never_meets_the_callers_own_installation(tmp_path: Path) -> None:
    inherited = {"PATH": "/bin", "DATABASE_URL": "postgres://live", "M3_DATA_DIR": "/srv/m3", "M3_DEMO": "1"}
    env = own_environment(inherited, tmp_path)
    assert env == {"PATH": "/bin", "M3_DATA_DIR": str(tmp_path), "M3_LOG_LEVEL": "WARNING"}


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([7.0], 0.5, 7.0),
        ([7.0], 0.95, 7.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        (list(range(1, 101)), 0.95, 95),
        (list(range(1, 21)), 0.95, 19),
        (list(range(1, 21)), 1, 20),
    ],
)
def test_a_percentile_is_the_measured_value_at_its_rank(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == expected


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0), ([1.0], 1.1)])
def test_a_percentile_of_nothing_or_of_an_impossible_share_is_refused(
    values: list[float], share: float
) -> None:
    with pytest.raises(ValueError, match="a percentile needs"):
        percentile(values, share)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.00"),
        (1.234, "1.23"),
        (-0.5, "-0.50"),
        (9.96, "10.0"),
        (12.34, "12.3"),
        (99.6, "100"),
        (1234.5, "1234"),
    ],
)
def test_a_number_shows_no_more_digits_than_it_is_worth(value: float, shown: str) -> None:
    assert short(value) == shown


def test_every_series_is_shown_in_multiples_of_both_yardsticks_medians() -> None:
    commit = Series(name="commit", values=[2.0, 2.0, 4.0])
    echo = Series(name="echo", values=[4.0, 4.0, 4.0])
    measured = Series(name="card", values=[20.0, 40.0, 80.0, 60.0])
    lines = ratio_table([measured], commit=commit, echo=echo).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]] == [
        ["commit", "2.00 / 4.00", "1.00 / 2.00", "0.50 / 1.00", "3"],
        ["echo", "4.00 / 4.00", "2.00 / 2.00", "1.00 / 1.00", "3"],
        ["card", "40.0 / 80.0", "20.0 / 40.0", "10.0 / 20.0", "4"],
    ]


def test_the_columns_of_a_table_line_up() -> None:
    assert table(["", "memory"], [["new", "1"], ["parked", "123456789"]]) == (
        "|        |    memory |\n| ------ | --------: |\n| new    |         1 |\n| parked | 123456789 |"
    )


def test_a_row_with_a_missing_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="as many cells"):
        table(["", "memory"], [["new"]])


def test_a_report_is_a_title_a_table_and_its_notes_with_a_line_between() -> None:
    assert str(Report(title="T", table="| x |", notes=["Careful."])) == "## T\n\n| x |\n\nCareful."


@pytest.mark.parametrize(
    ("scale", "args", "said"),
    [
        ("1", ["nothing"], "no such benchmark: nothing"),
        ("0", [], "M3_BENCH_SCALE='0'"),
        ("x", [], "M3_BENCH_SCALE='x'"),
    ],
)
def test_a_wrong_name_or_scale_is_refused_before_anything_is_measured(
    scale: str, args: list[str], said: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks", *args],
        cwd=ROOT,
        env={"M3_BENCH_SCALE": scale},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stdout == ""
