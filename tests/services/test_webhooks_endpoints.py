"""Which addresses may be told of runs, and who may say so (m8tes-http 7)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from runs.access import Actor
from runs.errors import EgressRefused, ModelValidationError, NotAllowed, NotFound
from runs.models import LedgerEntry, Run, User, WebhookDelivery, WebhookEndpoint
from runs.webhooks import endpoints
from runs.webhooks.endpoints import Change

Acting = Callable[[User], Actor]
PUBLIC = "93.184.216.34"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, settings: Any) -> dict[str, list[str]]:
    """What the resolver says of a host; of any other that there is none."""
    settings.M3.allow_private_urls = False
    known: dict[str, list[str]] = {"hooks.example": [PUBLIC]}

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror
        return [(socket.AF_INET, 0, 0, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture
def admin(ada: User, acting: Acting) -> Actor:
    return acting(ada)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/x",
        "https://localhost/x",
        "https://LOCALHOST./x",
        "https://a.localhost/x",
        "https://db.internal/x",
        "https://printer.local/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://10.0.0.8/x",
        "https://192.168.1.1:8443/x",
        "https://169.254.169.254/latest",
        "https://[::ffff:127.0.0.1]/x",
        "https://inside.example/x",
        "https://both.example/x",
        "https://user:pw@hooks.example/x",
        "ftp://hooks.example/x",
        "https:///x",
        "hooks.example",
        "https://hooks.example/" + "x" * 2100,
    ],
    ids=lambda url: url[:40],
)
def test_an_address_that_is_not_public_https_is_refused_and_nothing_is_stored(
    admin: Actor, names: dict[str, list[str]], url: str
) -> None:
    names |= {"inside.example": ["10.1.2.3"], "both.example": [PUBLIC, "127.0.0.1"]}
    names |= {host: [host] for host in ("127.0.0.1", "::1", "10.0.0.8", "192.168.1.1", "169.254.169.254")}
    names["::ffff:127.0.0.1"] = ["::ffff:127.0.0.1"]
    with pytest.raises(EgressRefused) as refused:
        endpoints.create(admin, url)
    assert refused.value.details["fields"][0]["path"] == ["url"]
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.parametrize(
    "host", ["☃.example", "a\u200db.example", "999.1.1.1", "a..b", "x" * 64 + ".example"]
)
def test_a_host_that_nothing_can_call_is_refused_and_nothing_is_stored(
    admin: Actor, settings: Any, host: str
) -> None:
    """With the resolver that there is: it is not asked for such names, or cannot be."""
    settings.M3.allow_private_urls = False
    with pytest.raises(EgressRefused, match="not a name that a host can have") as refused:
        endpoints.create(admin, f"https://{host}/x")
    assert refused.value.status == 422
    assert refused.value.details["fields"][0]["path"] == ["url"]
    assert not WebhookEndpoint.objects.exists()


def test_a_change_of_address_is_checked_like_a_new_one(admin: Actor, names: Any) -> None:
    made = endpoints.create(admin, "https://hooks.example/x")
    with pytest.raises(EgressRefused):
        endpoints.change(admin, made.pk, Change(url="https://db.internal/x"))
    assert WebhookEndpoint.objects.get().url == "https://hooks.example/x"


def test_a_name_that_nobody_knows_yet_is_taken_because_every_delivery_checks_it(
    admin: Actor, names: Any
) -> None:
    assert endpoints.create(admin, "https://soon.example/x").url == "https://soon.example/x"


def test_the_development_switch_permits_loopback(admin: Actor, settings: Any) -> None:
    settings.M3.allow_private_urls = True
    assert endpoints.create(admin, "http://127.0.0.1:9/x").pk


def test_a_secret_is_long_and_kept_encrypted(admin: Actor, names: Any) -> None:
    from django.db import connection

    made = endpoints.create(admin, "https://hooks.example/x")
    assert len(made.secret) >= 32
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM runs_webhookendpoint")
        assert made.secret not in str(cursor.fetchone()[0])
    assert WebhookEndpoint.objects.get().secret == made.secret


def test_a_rotated_secret_is_another_one(admin: Actor, names: Any) -> None:
    made = endpoints.create(admin, "https://hooks.example/x")
    rotated = endpoints.change(admin, made.pk, Change(rotate_secret=True))
    assert rotated.secret != made.secret
    assert endpoints.change(admin, made.pk, Change(active=True)).secret == rotated.secret


def test_events_are_kept_once_each_and_unknown_ones_are_refused(admin: Actor, names: Any) -> None:
    events = ["run.failed", "run.started", "run.failed"]
    assert endpoints.create(admin, "https://hooks.example/x", events).events == ["run.started", "run.failed"]
    with pytest.raises(ModelValidationError) as refused:
        endpoints.create(admin, "https://hooks.example/x", ["run.failed", "run.exploded"])
    assert refused.value.details["fields"][0]["path"] == ["events", 1]


def test_what_waits_is_given_up_when_an_endpoint_is_switched_off(
    admin: Actor, names: Any, make_run: Callable[..., Run]
) -> None:
    made = endpoints.create(admin, "https://hooks.example/x", ["run.started"])
    make_run()
    endpoints.change(admin, made.pk, Change(active=False))
    row = WebhookDelivery.objects.get()
    assert (row.status, row.next_retry_at, row.response_body) == ("failed", None, endpoints.SWITCHED_OFF)


def test_a_removed_endpoint_takes_its_deliveries_along(
    admin: Actor, names: Any, make_run: Callable[..., Run]
) -> None:
    made = endpoints.create(admin, "https://hooks.example/x", ["run.started"])
    make_run()
    endpoints.remove(admin, made.pk)
    assert not WebhookDelivery.objects.exists()


def test_every_change_is_in_the_ledger_without_a_secret(admin: Actor, names: Any) -> None:
    made = endpoints.create(admin, "https://hooks.example/x?token=abc")
    endpoints.change(admin, made.pk, Change(rotate_secret=True))
    endpoints.remove(admin, made.pk)
    entries = LedgerEntry.objects.filter(action__startswith="webhook.").order_by("seq")
    assert [entry.action for entry in entries] == ["webhook.created", "webhook.changed", "webhook.removed"]
    assert entries[1].facts["secret_rotated"] is True
    assert not [entry for entry in entries if "abc" in str(entry.facts) or made.secret in str(entry.facts)]


def test_there_is_an_end_to_how_many_an_account_has(
    admin: Actor, names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    endpoints.create(admin, "https://hooks.example/x")
    with pytest.raises(ModelValidationError, match="1 webhooks at most"):
        endpoints.create(admin, "https://hooks.example/x")


def test_only_admins_say_where_an_account_is_heard(
    alice: User, admin: Actor, names: Any, acting: Acting
) -> None:
    made = endpoints.create(admin, "https://hooks.example/x")
    operator = acting(alice)
    for refused in (
        lambda: endpoints.create(operator, "https://hooks.example/x"),
        lambda: endpoints.change(operator, made.pk, Change(active=False)),
        lambda: endpoints.remove(operator, made.pk),
    ):
        with pytest.raises(NotAllowed):
            refused()


def test_an_endpoint_of_another_account_looks_like_none(admin: Actor, names: Any, other_account: Any) -> None:
    made = endpoints.create(admin, "https://hooks.example/x")
    WebhookEndpoint.objects.update(account=other_account)
    with pytest.raises(NotFound):
        endpoints.change(admin, made.pk, Change(active=False))
    with pytest.raises(NotFound):
        endpoints.remove(admin, made.pk)
