"""Whose word about a tool's risk counts (design sections 6 and 7, m8tes-http 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from runs.risk import (
    HIGH_STAKES,
    ROUTINE_TARGETS,
    Risk,
    effective_risk,
    effectively_idempotent,
    is_safe,
)


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ({"readOnlyHint": True}, Risk.READ),
        ({"destructiveHint": True}, Risk.DESTROY),
        ({"readOnlyHint": True, "destructiveHint": True}, Risk.DESTROY),
        ({"readOnlyHint": False, "destructiveHint": False}, Risk.WRITE),
        ({"readOnlyHint": "true"}, Risk.WRITE),
        ({"readOnlyHint": 1}, Risk.WRITE),
        ({}, Risk.WRITE),
    ],
)
def test_annotations_of_a_trusted_server_count_if_they_are_plain_statements(
    annotations: dict[str, Any], risk: Risk
) -> None:
    assert effective_risk(admin=None, annotations=annotations, trusted=True) is risk


@pytest.mark.parametrize("annotations", [{"readOnlyHint": True}, {"destructiveHint": True}, {}])
def test_a_server_that_nobody_trusts_says_nothing_about_its_tools(annotations: dict[str, Any]) -> None:
    assert effective_risk(admin=None, annotations=annotations, trusted=False) is Risk.WRITE


@pytest.mark.parametrize("admin", list(Risk))
def test_the_word_of_an_admin_beats_everything(admin: Risk) -> None:
    annotations = {"readOnlyHint": True, "destructiveHint": True}
    for tool in ("search", "decide_value_observation"):
        assert effective_risk(admin=admin, annotations=annotations, trusted=True, tool=tool) is admin


def test_decide_value_observation_is_strict_out_of_the_box_whatever_its_server_says() -> None:
    risk = effective_risk(
        admin=None, annotations={"readOnlyHint": True}, trusted=True, tool="decide_value_observation"
    )
    assert risk is Risk.STRICT


def test_only_reading_is_safe_for_an_ordinary_tool() -> None:
    assert {risk for risk in Risk if is_safe(risk, "desk:search")} == {Risk.READ}


@pytest.mark.parametrize("target", sorted(ROUTINE_TARGETS))
def test_routine_task_setup_is_safe_until_an_admin_raises_its_risk(target: str) -> None:
    assert {risk for risk in Risk if is_safe(risk, target)} == {Risk.READ, Risk.WRITE}


def test_a_servers_tool_is_not_routine_because_of_its_name() -> None:
    assert not is_safe(Risk.WRITE, "desk:Agent")
    assert not is_safe(Risk.WRITE, "desk:local:Agent")


def test_high_stakes_are_money_access_and_destroy() -> None:
    assert {"money", "access", "destroy"} == HIGH_STAKES


@pytest.mark.parametrize(
    ("admin", "admin_idempotent", "annotations", "trusted", "expected"),
    [
        (None, None, {}, True, False),
        (None, None, {"idempotentHint": True}, True, True),
        (None, None, {"idempotentHint": True}, False, False),
        (None, None, {"idempotentHint": "yes"}, True, False),
        (None, None, {"readOnlyHint": True}, True, True),
        (Risk.READ, None, {}, False, True),
        (Risk.WRITE, None, {"readOnlyHint": True}, True, False),
        (None, True, {}, False, True),
        (None, False, {"idempotentHint": True}, True, False),
        (Risk.READ, False, {}, True, False),
    ],
)
def test_a_call_may_be_repeated_only_if_somebody_who_counts_says_so(
    admin: Risk | None,
    admin_idempotent: bool | None,
    annotations: dict[str, Any],
    trusted: bool,
    expected: bool,
) -> None:
    found = effectively_idempotent(
        admin=admin, admin_idempotent=admin_idempotent, annotations=annotations, trusted=trusted
    )
    assert found is expected


@pytest.mark.parametrize("risk", list(Risk))
def test_a_risk_is_shown_by_a_word_and_a_sentence(risk: Risk) -> None:
    assert risk.word.lower() == risk.value
    assert risk.describe.endswith(".")
