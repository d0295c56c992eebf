"""The texts behind digests are kept, so that a change can be shown after it has happened (R25, R28)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from runs import definitions, servers
from runs.access import Actor, actor_for
from runs.canonical import digest
from runs.mcp_client import HttpBinding, StdioBinding, ToolDefinition, identity
from runs.models import Account, Run, SeenAddress, SeenDefinition, Server, Tool, User
from runs.servers import ServerValues
from runs.tool_rows import store_tools

MakeRun = Callable[..., Run]


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def listed(description: str, name: str = "send_email") -> ToolDefinition:
    return ToolDefinition(
        name=name,
        title="Send",
        description=description,
        input_schema={"type": "object"},
        output_schema=None,
        annotations={"readOnlyHint": True},
        digest=digest([name, description]),
    )


def test_a_definition_can_be_read_after_its_tool_has_changed(desk: Server) -> None:
    first, second = listed("Sends."), listed("Sends to everybody.")
    store_tools(desk, [first])
    store_tools(desk, [second])
    found = definitions.recall(desk.account_id, [first.digest, second.digest, ""])
    assert {one: row.description for one, row in found.items()} == {
        first.digest: "Sends.",
        second.digest: "Sends to everybody.",
    }


def test_a_definition_that_is_listed_again_is_stored_once(desk: Server) -> None:
    for _ in range(3):
        store_tools(desk, [listed("Sends.")])
    assert SeenDefinition.objects.count() == 1


def test_a_server_that_changes_with_every_look_cannot_fill_the_account(
    desk: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "MAX_VERSIONS", 3)
    monkeypatch.setattr(definitions, "MAX_KEPT", 5)
    for number in range(6):
        store_tools(desk, [listed(f"Version {number}.")])
    assert SeenDefinition.objects.count() == 3
    newest = listed("Version 5.").digest
    assert definitions.recall(desk.account_id, [newest])[newest].description == "Version 5.", (
        "it is still listed"
    )
    for number in range(6):
        store_tools(desk, [listed("Another.", name=f"tool_{number}")])
    assert SeenDefinition.objects.count() == 5


def test_definitions_of_another_account_are_not_found(desk: Server, other_account: Account) -> None:
    one = listed("Sends.")
    store_tools(desk, [one])
    assert definitions.recall(other_account.pk, [one.digest]) == {}


def test_both_addresses_are_known_after_a_server_has_moved(account: Account, admin: Actor) -> None:
    server = servers.register(admin, ServerValues(name="web", url="https://1.1.1.1/mcp"))
    before = server.identity
    server = servers.update(admin, server.pk, ServerValues(name="web", url="https://1.0.0.1/mcp"))
    assert definitions.addresses(account.pk, [before, server.identity]) == {
        before: "https://1.1.1.1/mcp",
        server.identity: "https://1.0.0.1/mcp",
    }


@pytest.mark.parametrize(
    ("binding", "shown"),
    [
        (
            HttpBinding(url="https://me:pw@a.example/mcp?token=s3cret&team=7", headers={"X": "s3cret"}),
            "https://[redacted]@a.example/mcp?token=[redacted]&team=7",
        ),
        (
            StdioBinding(
                command="mcp",
                args=("--api-key", "s3cret", "--password=s3cret", "TOKEN=s3cret", "--root", "/srv"),
                env={"KEY": "s3cret"},
            ),
            "mcp --api-key '[redacted]' '--password=[redacted]' 'TOKEN=[redacted]' --root /srv",
        ),
        (
            StdioBinding(command="mcp", args=("-H", "Authorization: Bearer s3cret", "--token", "--loud")),
            "mcp -H 'Authorization: [redacted]' --token --loud",
        ),
    ],
)
def test_an_address_is_stored_without_its_secrets(
    account: Account, binding: HttpBinding | StdioBinding, shown: str
) -> None:
    definitions.keep_address(Server(account=account), binding)
    row = SeenAddress.objects.get()
    assert (row.identity, row.address) == (identity(binding), shown)


def test_what_the_host_has_put_behind_an_entry_since_is_remembered_at_the_next_look(
    desk: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.M3.stdio_servers, "desk", {"command": "other", "args": ["--x"]})
    definitions.keep_present_address(desk)
    monkeypatch.delitem(settings.M3.stdio_servers, "desk")
    definitions.keep_present_address(desk)
    assert [row.address for row in SeenAddress.objects.all()] == ["other --x"]


def test_only_what_nothing_refers_to_is_forgotten(desk: Server, make_run: MakeRun) -> None:
    frozen, pinned, unused, present = (
        listed(words) for words in ("Frozen.", "Pinned.", "Unused.", "Present.")
    )
    store_tools(desk, [frozen])
    run = make_run()
    for one in (pinned, unused, present):
        store_tools(desk, [one])
    definitions.keep_address(desk, StdioBinding(command="gone"))
    definitions.keep_present_address(desk)
    assert run.turns.get().bindings["desk"]["tools"] == {"send_email": frozen.digest}

    later = dt.timedelta(seconds=-1)
    assert definitions.forget(desk.account_id, pinned=[pinned.digest]) == (0, 0), "all of it is young"
    assert definitions.forget(desk.account_id, pinned=[pinned.digest], unused_for=later) == (1, 1)
    assert set(SeenDefinition.objects.values_list("digest", flat=True)) == {
        frozen.digest,
        pinned.digest,
        present.digest,
    }
    assert [row.address for row in SeenAddress.objects.all()] == ["desk-server"]

    run.delete()
    assert definitions.forget(desk.account_id, pinned=[], unused_for=later) == (2, 0)
    assert SeenDefinition.objects.get().digest == Tool.objects.get(name="send_email").digest
    assert SeenDefinition.objects.get().seen_at <= timezone.now()
