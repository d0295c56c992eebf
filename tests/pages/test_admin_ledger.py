"""What a superuser changes in Django's admin is in the ledger of the account too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from runs import audit, audit_check
from runs.models import Account, EndUser, LedgerEntry, Membership, Server, User


@pytest.fixture
def root(client_for: Callable[[User], Client], db: None) -> Client:
    return client_for(User.objects.create_superuser("root", password="x" * 12))


def told() -> list[tuple[str, str, str]]:
    return list(LedgerEntry.objects.order_by("seq").values_list("action", "subject", "actor_name"))


def test_a_changed_role_is_told_of_with_what_it_became(root: Client, account: Account, vera: User) -> None:
    membership = Membership.objects.get(user=vera)
    inline = {
        "memberships-TOTAL_FORMS": 1,
        "memberships-INITIAL_FORMS": 1,
        "memberships-0-id": membership.pk,
        "memberships-0-account": account.pk,
        "memberships-0-user": vera.pk,
        "memberships-0-role": "admin",
    }
    fields = {"name": account.name, "slug": account.slug, "elicitation_timeout": "", **inline}
    answer = root.post(f"/admin/runs/account/{account.pk}/change/", fields)

    assert answer.status_code == 302, answer.content.decode()[:2000]
    assert Membership.objects.get().role == "admin"
    assert told() == [("admin.changed", f"account {account.pk}", "root")]
    assert "vera is admin in Acme" in repr(LedgerEntry.objects.get().facts["changes"])
    assert list(audit_check.check(account)) == []


def test_a_word_on_a_tool_from_there_is_told_of(root: Client, desk: Server) -> None:
    tool = desk.tools.get(name="refund")
    answer = root.post(f"/admin/runs/tool/{tool.pk}/change/", {"risk": "blocked", "idempotent": "unknown"})

    assert answer.status_code == 302, answer.content.decode()[:2000]
    assert told() == [("admin.changed", f"tool {tool.pk}", "root")]


def test_what_is_deleted_there_is_told_of(root: Client, account: Account) -> None:
    gone = EndUser.objects.create(account=account, user_id="cust_1")
    number = gone.pk
    root.post(f"/admin/runs/enduser/{number}/delete/", {"post": "yes"})

    assert not EndUser.objects.exists()
    assert told() == [("admin.deleted", f"enduser {number}", "root")]


def test_the_ledger_can_be_read_there_and_not_changed(root: Client, account: Account) -> None:
    entry = audit.note(account, None, "test", "x 1")
    assert root.get("/admin/runs/ledgerentry/").status_code == 200
    assert root.post(f"/admin/runs/ledgerentry/{entry.pk}/change/", {"action": "other"}).status_code == 403
    assert root.get("/admin/runs/ledgerentry/add/").status_code == 403
