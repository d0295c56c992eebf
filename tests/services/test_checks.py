"""What a start refuses before it does anything, and how it says so (`m3web.checks`)."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from channels.layers import channel_layers
from django.conf import LazySettings
from django.core.checks import ERROR, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from m3web import config, stores
from tests.mcp.bindings import ROOT, free_port
from tests.requirements import redis_url


def with_environment(settings: LazySettings, tmp_path: Any, **source: str) -> None:
    loaded = config.load(tmp_path, {"M3_DATA_DIR": str(tmp_path), **source})
    settings.M3 = dataclasses.replace(settings.M3, problems=loaded.problems)


def test_every_problem_becomes_an_error_with_the_way_out(settings: LazySettings, tmp_path: Any) -> None:
    with_environment(settings, tmp_path, M3_SWEEP_SECONDS="often", M3_DEMO="perhaps")

    found = {error.msg: error for error in run_checks() if error.id == "m3web.E001"}

    (demo, sweep) = sorted(found)
    assert demo.startswith("M3_DEMO='perhaps' cannot be used (not a yes/no value). Expected true or false.")
    assert sweep.startswith("M3_SWEEP_SECONDS='often' cannot be used")
    assert found[sweep].level == ERROR
    assert found[sweep].hint == "Correct or unset M3_SWEEP_SECONDS; the README lists all settings."


def test_a_command_does_not_start_with_a_bad_setting(settings: LazySettings, tmp_path: Any) -> None:
    with_environment(settings, tmp_path, M3_SWEEP_SECONDS="often")

    with pytest.raises(SystemCheckError, match="M3_SWEEP_SECONDS='often' cannot be used"):
        call_command("check")


def test_a_good_environment_has_no_complaint(settings: LazySettings, tmp_path: Any) -> None:
    with_environment(settings, tmp_path, M3_SWEEP_SECONDS="1")

    assert [error for error in run_checks() if str(error.id).startswith("m3web.")] == []


def test_a_missing_channel_layer_is_an_error_and_not_a_silent_page(settings: LazySettings) -> None:
    settings.CHANNEL_LAYERS = {}
    channel_layers.backends.clear()
    try:
        assert "m3web.E002" in {error.id for error in run_checks()}
    finally:
        channel_layers.backends.clear()


@pytest.mark.parametrize("demo", [True, False])
def test_a_deployment_is_warned_of_demo_mode(settings: LazySettings, demo: bool) -> None:
    settings.M3 = dataclasses.replace(settings.M3, demo=demo)

    warned = "m3web.W001" in {message.id for message in run_checks(include_deployment_checks=True)}

    assert warned is demo


# --- PostgreSQL and Redis -------------------------------------------------------------------------------------


def check_with(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py check` with this environment and no other of ours."""
    ours = ("M3_", "DATABASE_", "REDIS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**inherited, "M3_DATA_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_database_server_that_is_not_there_is_one_error_without_the_password(tmp_path: Path) -> None:
    ended = check_with(tmp_path, DATABASE_URL=f"postgres://m3:hunter2@127.0.0.1:{free_port()}/m3")

    assert ended.returncode == 1
    assert "(m3web.E003) The database of DATABASE_URL cannot be used: connection" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr


def test_a_redis_that_is_not_there_is_a_warning_and_the_product_starts(tmp_path: Path) -> None:
    ended = check_with(tmp_path, REDIS_URL=f"redis://:hunter2@127.0.0.1:{free_port()}/0")

    assert ended.returncode == 0
    assert "(m3web.W002) The Redis of REDIS_URL does not answer" in ended.stderr
    assert "hunter2" not in ended.stderr


def test_servers_that_answer_are_no_complaint(tmp_path: Path, postgres_database: str) -> None:
    ended = check_with(tmp_path, DATABASE_URL=postgres_database, REDIS_URL=redis_url())

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("variable", "url", "package"),
    [
        ("DATABASE_URL", "postgres://m3:hunter2@db/m3", "psycopg"),
        ("DATABASE_URL", "postgres://m3:hunter2@db/m3", "psycopg_pool"),
        ("REDIS_URL", "redis://:hunter2@cache:6379/0", "channels_redis"),
    ],
)
def test_a_missing_package_is_named_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, url: str, package: str
) -> None:
    monkeypatch.setattr(stores, "find_spec", lambda name: None if name == package else object())

    (problem,) = config.load(tmp_path, {"M3_DATA_DIR": str(tmp_path), variable: url}).problems

    assert problem.variable == variable
    assert "requirements/scale.txt" in problem.message
    assert "hunter2" not in problem.message
