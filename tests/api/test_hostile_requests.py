"""Every address, of pages and API, with values that no database can hold or compare: refused, never a failure of ours.

SQLite takes most of them in silence, PostgreSQL raises, so the same test says on both that they behave alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.converters import IntConverter, SlugConverter

from runs.models import Round, User

NUMBERS = ["2147483648", "9223372036854775808", "9" * 40]
"""Beyond four bytes, beyond eight, beyond anything."""

TEXTS = ["%00", "a%00b", "%ED%A0%80", "%EF%B7%90", "x" * 3000]
"""NUL, half a character (as bytes that are no UTF-8), the mark of our own escapes, and a long one."""

QUERY_TEXTS = [
    *TEXTS,
    "-1",
    "1e9",
    "%D9%A3",
    "9999-12-31T23:59:59-23:00",
    "0001-01-01T00:00:00%2B23:00",
    *NUMBERS,
]
PAGES = ["agent", "after", "before", "edit", "kind", "next", "page", "run", "server", "status", "user"]
"""What pages read of their query: a filter that means nothing filters nothing, so all are sent at once."""

LISTS = ["agent_id", "fields", "limit", "name", "run", "server", "starting_after", "type", "user_id"]
"""What lists of the API read of theirs: the first wrong one is refused, so each is sent alone."""

PATIENT = {"stream"}
"""Ends of addresses whose answers go on."""

pytestmark = pytest.mark.django_db


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every address of ours as a template, with the converters of its parts; Django's admin is not ours."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if not route.startswith("admin/"):
                yield from patterns(entry, route)
        elif isinstance(entry, URLPattern) and route.rpartition("/")[2] not in PATIENT:
            yield route, dict(entry.pattern.converters)


def filled(route: str, converters: dict[str, Any], number: str, text: str) -> str:
    for name, converter in converters.items():
        kind = {IntConverter: ("int", number), SlugConverter: ("slug", "x" * 300)}
        word, value = kind.get(type(converter), ("", text))
        for spelled in (f"<{word}:{name}>", f"<{name}>", f"<str:{name}>", f"<path:{name}>"):
            route = route.replace(spelled, value)
    return "/" + route


ADDRESSES = sorted(patterns(get_resolver()), key=lambda each: each[0])


@pytest.fixture
def admin(client_for: Callable[[User], Client], ada: User) -> Client:
    client = client_for(ada)
    client.raise_request_exception = False
    return client


def test_every_address_is_tried() -> None:
    assert len(ADDRESSES) > 70


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beyond_the_database_are_not_there(admin: Client, number: str) -> None:
    for route, converters in ADDRESSES:
        if not any(isinstance(each, IntConverter) for each in converters.values()):
            continue
        for method in ("GET", "POST", "PATCH", "DELETE"):
            address = filled(route, converters, number, "1")
            answer = admin.generic(method, address, b"{}", content_type="application/json")
            assert answer.status_code in (404, 405, 415, 422), (method, address, answer.status_code)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_name_nothing_are_not_there(admin: Client, text: str) -> None:
    for route, converters in ADDRESSES:
        if not converters or all(isinstance(each, IntConverter) for each in converters.values()):
            continue
        for method in ("GET", "POST", "PATCH", "DELETE"):
            address = filled(route, converters, "1", text)
            answer = admin.generic(method, address, b"{}", content_type="application/json")
            assert answer.status_code < 500, (method, address, answer.status_code)


@pytest.mark.parametrize("value", QUERY_TEXTS)
def test_filters_and_cursors_that_mean_nothing_are_ignored_or_refused(
    admin: Client, value: str, make_round: Callable[..., Round]
) -> None:
    run = make_round().run_id
    for route, converters in ADDRESSES:
        address = filled(route, converters, str(run), "x")
        pairs = [f"{name}={value}" for name in (LISTS if route.startswith("api/") else PAGES)]
        for query in pairs if route.startswith("api/") and route.endswith("/") else ["&".join(pairs)]:
            answer = admin.get(f"{address}?{query}")
            assert answer.status_code < 500, (address, query)


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "messages"])
@pytest.mark.parametrize("value", ['"abcdefghijkl\\000mnop"', "x" * 3000, '"\\355\\240\\200abcdefgh"'])
def test_cookies_that_nobody_gave_are_nobodys(name: str, value: str, db: None) -> None:
    client = Client(raise_request_exception=False, headers={"cookie": f"{name}={value}"})

    assert client.get("/").status_code == 302
    assert client.get("/login").status_code == 200
    assert client.get("/api/v2/runs/").status_code == 401


@pytest.mark.parametrize("key", ["m3_\x00_x", "m3_a\x00b_secret", f"m3_{'x' * 5000}_y", "m3_\ud800_x"])
def test_keys_that_nobody_made_are_not_valid(key: str, db: None) -> None:
    client = Client(raise_request_exception=False)

    answer = client.get("/api/v2/runs/", headers={"authorization": f"Bearer {key}"})

    assert answer.status_code == 401


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000, "a\ud800b"])
def test_logins_that_nobody_has_are_refused(name: str, db: None) -> None:
    client = Client(raise_request_exception=False)
    body = f"username={_quoted(name)}&password={_quoted(name)}"

    for address in ("/login", "/admin/login/"):
        answer = client.post(address, body, content_type="application/x-www-form-urlencoded")
        assert answer.status_code == 200


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"))
