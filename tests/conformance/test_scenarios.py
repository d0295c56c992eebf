"""The protocol's own client scenarios, run by their own runner against our client."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.scenarios import SCENARIOS, Run, Scenario, run

ATTEMPTS_IF_LATE = 4
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.node
@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_our_client_conforms(scenario: Scenario, tmp_path: Path) -> None:
    ended = run_in_time(scenario, tmp_path)
    report = COLOUR.sub("", ended.report)
    assert ended.exit_code == 0, report
    assert ended.names("FAILURE", "WARNING") == [], report
    assert tuple(ended.names("SKIPPED")) == scenario.not_ours, report
    assert len(ended.names("SUCCESS")) == scenario.checks, report


def run_in_time(scenario: Scenario, results: Path) -> Run:
    """Run a scenario, again if only the machine was too slow for it; a client that waits wrongly always does."""
    for attempt in range(ATTEMPTS_IF_LATE):
        ended = run(scenario, results / str(attempt))
        if not ended.was_only_late:
            break
    return ended
