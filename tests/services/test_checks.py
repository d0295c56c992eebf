"""What a start refuses before it does anything, and how it says so (`m3web.checks`)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from channels.layers import channel_layers
from django.conf import LazySettings
from django.core.checks import ERROR, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from m3web import config


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
