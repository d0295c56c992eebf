"""One product per test module; a person is closed, and must have seen no error, when their test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.product import Person, Product, chromium
from tests.requirements import own_database


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with own_database() as environment:
        running = Product(tmp_path_factory.mktemp("product"), **environment)
        running.start()
        yield running
        if running.process is not None:
            running.stop()


@pytest.fixture
def person(browser: Browser, product: Product) -> Iterator[Callable[..., Person]]:
    """`person("alice")` signs alice in at a browser of her own."""
    people: list[Person] = []

    def arrive(name: str, **context: object) -> Person:
        people.append(Person(browser, product, name, **context))
        return people[-1]

    yield arrive
    errors = [f"{each.name}: {error}" for each in people for error in each.errors]
    for each in people:
        each.close()
    assert errors == [], "pages logged errors"
