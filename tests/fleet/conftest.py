"""Two machines for all tests of this folder; each test begins with both of them whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.machines import Fleet
from tests.requirements import networks


@pytest.fixture(scope="package")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    networks()
    with Fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def fleet(both: Fleet) -> Fleet:
    both.make_whole()
    return both
