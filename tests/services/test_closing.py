"""An account that was handed over goes on nowhere here: nobody sees, answers or starts anything, and time passes by."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from approvals import decisions
from runs import access, closing, keys, lease
from runs.audit_check import check
from runs.closing import NEVER
from runs.errors import NotAllowed, StateConflict
from runs.models import (
    LONG_AGO,
    Account,
    Agent,
    Membership,
    Role,
    Round,
    Run,
    User,
    WebhookDelivery,
    WebhookEndpoint,
)
from runs.webhooks import deliveries
from runs.worker.deadlines import sweep
from tests.people import person

pytestmark = pytest.mark.django_db

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
GONE = "was handed over to another installation"


def close(account: Account) -> Account:
    return closing.close(account.pk, alone=False)


def test_its_people_read_where_they_would_have_seen_it(
    account: Account, alice: User, client_for: Callable[[User], Client]
) -> None:
    close(account)
    client = client_for(alice)
    for address in ("/", "/runs", "/api/v2/runs/"):
        page = client.get(address)
        assert page.status_code == 403
        assert GONE in page.content.decode()


def test_its_keys_are_refused_with_the_same_words(account: Account, client: Client) -> None:
    secret = keys.issue(account, "shop", role=Role.ADMIN).secret
    close(account)
    answer = client.get("/api/v2/runs/", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403
    assert GONE in answer.json()["error"]["message"]


def test_another_account_of_the_installation_goes_on(account: Account, other_account: Account) -> None:
    otto = person("otto", other_account, Role.OPERATOR)
    close(account)
    assert access.actor_for(otto).account == other_account


def test_somebody_of_two_accounts_is_at_home_in_the_open_one(
    account: Account, other_account: Account, alice: User
) -> None:
    Membership.objects.create(account=other_account, user=alice, role=Role.VIEWER.value)
    assert access.actor_for(alice).account == account
    close(account)
    assert access.actor_for(alice).account == other_account
    with pytest.raises(NotAllowed, match=GONE):
        access.actor_for(alice, account.pk)


def test_no_worker_takes_a_run_of_it_not_even_after_a_restart(
    account: Account, make_run: Callable[..., Run]
) -> None:
    run = make_run()
    close(account)
    lease.take_over()
    assert sweep() == []
    with pytest.raises(lease.SessionBusyError):
        lease.claim(run.pk, "me")


def test_neither_deadlines_nor_sleeps_nor_webhooks_come_due(
    account: Account, make_run: Callable[..., Run], make_round: Callable[..., Round]
) -> None:
    before = timezone.now() - dt.timedelta(minutes=1)
    round_, asleep = make_round(), make_run()
    Round.objects.filter(pk=round_.pk).update(deadline=before)
    Run.objects.filter(pk=asleep.pk).update(next_at=before)
    endpoint = WebhookEndpoint.objects.create(account=account, url="http://example.com", secret="s" * 40)
    WebhookDelivery.objects.create(endpoint=endpoint, run=asleep, body="{}", next_retry_at=before)
    close(account)
    sweep()
    assert Round.objects.get(pk=round_.pk).status == "pending"
    assert Run.objects.get(pk=asleep.pk).next_at == before
    assert not deliveries.anything_due(())


def test_an_answer_of_somebody_who_was_on_the_page_already_is_refused(
    account: Account, alice: User, make_round: Callable[..., Round]
) -> None:
    round_ = make_round()
    actor = access.actor_for(alice)
    close(account)
    with pytest.raises(NotAllowed, match=GONE):
        decisions.decide(actor, round_.pk, ALLOW, idempotency_key="one", via="page")
    assert Round.objects.get(pk=round_.pk).status == "pending"


def test_nothing_new_is_started_in_it_by_whoever_had_it_in_hand(
    account: Account, agent: Agent, make_run: Callable[..., Run]
) -> None:
    close(account)
    with pytest.raises(NotAllowed, match=GONE):
        make_run()
    assert not Run.objects.exists()


def test_it_stays_open_while_a_worker_is_at_work(account: Account, make_run: Callable[..., Run]) -> None:
    run = make_run()
    assert lease.claim(run.pk, "me")
    with pytest.raises(StateConflict, match=f"at work on runs of Acme \\({run.pk}\\)"):
        close(account)
    assert Account.objects.get(pk=account.pk).closed_at is None
    assert Run.objects.get(pk=run.pk).lease_until < NEVER


def test_the_leases_of_a_dead_process_do_not_keep_it_open(
    account: Account, make_run: Callable[..., Run]
) -> None:
    run = make_run()
    assert lease.claim(run.pk, "dead")
    closing.close(account.pk, alone=True)
    assert Run.objects.values_list("lease_owner", "lease_until").get(pk=run.pk) == (None, NEVER)


def test_reopening_lets_everything_go_on(account: Account, alice: User, make_run: Callable[..., Run]) -> None:
    run = make_run()
    close(account)
    closing.reopen(account.pk)
    assert access.actor_for(alice).account == account
    assert Run.objects.get(pk=run.pk).lease_until == LONG_AGO
    assert sweep() == [run.pk]
    with pytest.raises(StateConflict, match="open already"):
        closing.reopen(account.pk)


def test_the_ledger_tells_of_both_and_holds(account: Account, make_run: Callable[..., Run]) -> None:
    make_run()
    close(account)
    close(account)
    closing.reopen(account.pk)
    told = account.ledger_entries.order_by("seq").values_list("action", flat=True)
    assert list(told) == ["account.handed_over", "account.reopened"]
    assert list(check(account)) == []
