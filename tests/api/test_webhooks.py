"""Webhooks over the API: add, look, change, remove, read what was sent and send it again (m8tes-http 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Run, User, WebhookDelivery, WebhookEndpoint
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]
URL = "http://127.0.0.1:9/hook"


@pytest.fixture(autouse=True)
def development(settings: Any) -> None:
    settings.M3.allow_private_urls = True


@pytest.fixture
def admin(calling: Calling, ada: User) -> Caller:
    return calling(ada)


def test_a_new_webhook_shows_its_secret_once(admin: Caller) -> None:
    response = admin.post("webhooks/", {"url": URL, "from_the_future": 1})
    assert response.status_code == 201, response.content
    made = response.json()
    assert made["events"] == ["run.completed", "run.failed", "run.cancelled"]
    assert (made["url"], made["active"], made["user_id"]) == (URL, True, None)
    assert len(made["secret"]) >= 32

    masked = made["secret"][:4] + "..."
    assert admin.get(f"webhooks/{made['id']}").json() == {**made, "secret": masked}
    assert admin.get("webhooks/").json()["data"] == [{**made, "secret": masked}]


def test_no_events_are_a_choice(admin: Caller) -> None:
    assert admin.post("webhooks/", {"url": URL, "events": []}).json()["events"] == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ["url"]),
        ({"url": None}, ["url"]),
        ({"url": 5}, ["url"]),
        ({"url": ""}, ["url"]),
        ({"url": "not a url"}, ["url"]),
        ({"url": "ftp://127.0.0.1/"}, ["url"]),
        ({"url": URL, "events": "run.failed"}, ["events"]),
        ({"url": URL, "events": [5]}, ["events", 0]),
        ({"url": URL, "events": ["run.failed", "run.exploded"]}, ["events", 1]),
        ({"url": URL, "events": ["run.failed"] * 51}, ["events"]),
        ({"url": URL, "user_id": 5}, ["user_id"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_names_its_field_and_stores_nothing(
    admin: Caller, body: dict[str, Any], path: list[str | int]
) -> None:
    assert fields_of(admin.post("webhooks/", body)) == [path]
    assert not WebhookEndpoint.objects.exists()


def test_an_address_inside_a_network_is_refused(admin: Caller, settings: Any) -> None:
    settings.M3.allow_private_urls = False
    for url in (
        "http://hooks.example/x",
        "https://localhost/x",
        "https://10.0.0.1/x",
        "https://a.internal/x",
    ):
        response = admin.post("webhooks/", {"url": url})
        assert fields_of(response) == [["url"]]
        assert response.json()["error"]["error_code"] == "egress_refused"


def test_a_webhook_can_be_changed_part_by_part(admin: Caller) -> None:
    made = admin.post("webhooks/", {"url": URL}).json()
    address = f"webhooks/{made['id']}"

    changed = admin.patch(address, {"events": ["run.awaiting_input"], "active": False}).json()
    assert (changed["events"], changed["active"], changed["url"]) == (["run.awaiting_input"], False, URL)
    assert changed["secret"] == made["secret"][:4] + "..."
    assert admin.patch(address, {"url": f"{URL}/2"}).json()["url"] == f"{URL}/2"
    assert fields_of(admin.patch(address, {"active": "no"})) == [["active"]]
    assert fields_of(admin.patch(address, {"events": ["x"]})) == [["events", 0]]


def test_a_rotated_secret_is_shown_once(admin: Caller) -> None:
    made = admin.post("webhooks/", {"url": URL}).json()
    rotated = admin.patch(f"webhooks/{made['id']}", {"rotate_secret": True}).json()
    assert len(rotated["secret"]) >= 32
    assert rotated["secret"] != made["secret"]
    assert admin.get(f"webhooks/{made['id']}").json()["secret"] == rotated["secret"][:4] + "..."


def test_a_removed_webhook_is_gone(admin: Caller) -> None:
    made = admin.post("webhooks/", {"url": URL}).json()
    response = admin.send("DELETE", f"webhooks/{made['id']}")
    assert (response.status_code, response.content) == (204, b"")
    assert admin.get(f"webhooks/{made['id']}").status_code == 404
    assert admin.send("DELETE", f"webhooks/{made['id']}").status_code == 404


def test_the_scopes_never_mix(admin: Caller) -> None:
    ours = admin.post("webhooks/", {"url": URL}).json()
    anns = admin.post("webhooks/", {"url": URL, "user_id": "ann"}).json()
    assert anns["user_id"] == "ann"

    assert [row["id"] for row in admin.get("webhooks/").json()["data"]] == [ours["id"]]
    assert [row["id"] for row in admin.get("webhooks/", user_id="ann").json()["data"]] == [anns["id"]]
    for address in (f"webhooks/{anns['id']}", f"webhooks/{anns['id']}/deliveries"):
        assert admin.get(address).status_code == 404
        assert admin.get(address, user_id="ben").status_code == 404
        assert admin.get(address, user_id="ann").status_code == 200
    assert admin.patch(f"webhooks/{anns['id']}", {"active": False}).status_code == 404
    assert admin.send("DELETE", f"webhooks/{ours['id']}?user_id=ann").status_code == 404
    assert admin.send("DELETE", f"webhooks/{anns['id']}?user_id=ann").status_code == 204


def test_a_list_goes_on_after_its_last_row(admin: Caller) -> None:
    made = [admin.post("webhooks/", {"url": URL}).json()["id"] for _ in range(3)]
    first = admin.get("webhooks/", limit=2).json()
    assert [row["id"] for row in first["data"]] == [made[2], made[1]]
    assert (first["has_more"], first["next_starting_after"]) == (True, made[1])
    rest = admin.get("webhooks/", starting_after=made[1]).json()
    assert ([row["id"] for row in rest["data"]], rest["has_more"]) == ([made[0]], False)


def test_what_was_sent_is_listed_and_can_be_sent_again(admin: Caller, make_run: MakeRun) -> None:
    made = admin.post("webhooks/", {"url": URL, "events": ["run.started"]}).json()
    run = make_run()
    address = f"webhooks/{made['id']}/deliveries"

    (delivery,) = admin.get(address).json()["data"]
    assert (delivery["webhook_endpoint_id"], delivery["run_id"]) == (made["id"], run.pk)
    assert (delivery["event_type"], delivery["status"], delivery["attempts"]) == ("run.started", "pending", 0)
    assert delivery["event_id"].startswith("evt_")
    assert delivery["next_retry_at"].endswith("Z")

    response = admin.post(f"{address}/{delivery['id']}/redeliver")
    assert response.status_code == 201
    assert response.json()["event_id"] == delivery["event_id"]
    assert [row["id"] for row in admin.get(address).json()["data"]] == [response.json()["id"], delivery["id"]]
    assert admin.post(f"{address}/987654/redeliver").status_code == 404


@pytest.mark.parametrize("who", ["alice", "vera"])
def test_whoever_is_no_admin_may_look_and_change_nothing(
    who: str, request: pytest.FixtureRequest, calling: Calling, admin: Caller, make_run: MakeRun
) -> None:
    made = admin.post("webhooks/", {"url": URL, "events": ["run.started"]}).json()
    make_run()
    caller, address = calling(request.getfixturevalue(who)), f"webhooks/{made['id']}"
    delivery = WebhookDelivery.objects.get().pk
    assert caller.get(address).json()["secret"].endswith("...")
    assert caller.post("webhooks/", {"url": URL}).status_code == 403
    assert caller.patch(address, {"rotate_secret": True}).status_code == 403
    assert caller.send("DELETE", address).status_code == 403
    assert caller.post(f"{address}/deliveries/{delivery}/redeliver").status_code == 403


def test_a_webhook_of_another_account_looks_like_none(
    calling: Calling, admin: Caller, otto: User, nobody: Caller
) -> None:
    made = admin.post("webhooks/", {"url": URL}).json()
    address = f"webhooks/{made['id']}"
    for path in (address, f"{address}/deliveries"):
        assert calling(otto).get(path).status_code == 404
        assert nobody.get(path).status_code == 401
    assert calling(otto).get("webhooks/").json()["data"] == []
