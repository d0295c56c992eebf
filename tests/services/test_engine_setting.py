"""Which engine an installation has, and what is said where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from m3web import config, stores

POSTGRES = {"DATABASE_URL": "postgres://m3@db.example.com/m3"}


@pytest.mark.parametrize(
    ("environment", "engine"),
    [
        ({}, "in_process"),
        (POSTGRES, "procrastinate"),
        ({**POSTGRES, "M3_ENGINE": "in_process"}, "in_process"),
        ({**POSTGRES, "M3_ENGINE": "procrastinate"}, "procrastinate"),
        ({"M3_ENGINE": "in_process"}, "in_process"),
    ],
)
def test_the_database_says_which_engine_there_is_unless_the_setting_does(
    tmp_path: Path, environment: dict[str, str], engine: str
) -> None:
    loaded = config.load(tmp_path, environment)

    assert (loaded.engine, loaded.problems) == (engine, [])
    assert stores.apps(engine) == (["procrastinate.contrib.django"] if engine == "procrastinate" else [])


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"M3_ENGINE": "procrastinate"}, "it needs PostgreSQL, and DATABASE_URL names none"),
        ({**POSTGRES, "M3_ENGINE": "celery"}, "there is no such engine"),
    ],
)
def test_an_engine_that_cannot_be_had_is_a_problem_with_a_reason(
    tmp_path: Path, environment: dict[str, str], why: str
) -> None:
    (problem,) = config.load(tmp_path, environment).problems

    assert problem.variable == "M3_ENGINE"
    assert why in problem.message


@pytest.mark.parametrize("said", [{}, {"M3_ENGINE": "procrastinate"}])
def test_a_missing_package_is_a_problem_that_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    monkeypatch.setattr(stores, "missing_for_procrastinate", lambda: True)

    loaded = config.load(tmp_path, {**POSTGRES, **said})

    assert loaded.engine == "in_process", "so that the checks can be printed"
    (problem,) = loaded.problems
    assert problem.variable == "M3_ENGINE"
    assert "requirements/scale.txt has it" in problem.message


def test_without_the_package_the_other_engine_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "missing_for_procrastinate", lambda: True)

    loaded = config.load(tmp_path, {**POSTGRES, "M3_ENGINE": "in_process"})

    assert (loaded.engine, loaded.problems) == ("in_process", [])
