"""Whatever sequence of calls: our store and the reference answer alike, and end with the same records.

Generated are the calls on which the two are to agree. What they differ in on purpose is in `deviations`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.differential.both import Both
from tests.differential.machine import Rounds
from tests.requirements import repeats

STEPS = 40


@pytest.mark.timeout(1800)
def test_generated_calls_get_the_same_answers(both: Both, executions: Callable[[], str]) -> None:
    play(both, executions, repeats())


@pytest.mark.timeout(900)
def test_a_store_on_a_file_of_its_own_answers_alike_too(
    both_on_file: Both, executions_on_file: Callable[[], str]
) -> None:
    play(both_on_file, executions_on_file, max(repeats() // 10, 5))


def play(both: Both, executions: Callable[[], str], examples: int) -> None:
    run_state_machine_as_test(
        lambda: Rounds(both, executions),
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
