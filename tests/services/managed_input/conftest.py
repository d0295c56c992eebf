"""What the tests of the store share: its clock, an execution, and what became of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs.managed_input import DjangoManagedInputStore
from runs.models import Run, Turn
from tests.services.managed_input.samples import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(db: None, clock: Clock) -> DjangoManagedInputStore:
    return DjangoManagedInputStore(clock=clock)


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    return make_run()


@pytest.fixture
def execution(run: Run) -> str:
    """The id of an execution: the run's only turn."""
    return str(run.turns.get().pk)


@pytest.fixture
def turn_now(run: Run) -> Callable[[], Turn]:
    """The turn as the database has it at the moment of the call."""
    return lambda: Turn.objects.get(run=run)
