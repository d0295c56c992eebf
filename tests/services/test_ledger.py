"""The ledger of an account: every change with who made it, in one chain, and the heads of its runs' histories."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.db import connections, transaction

from approvals import decisions, policies
from approvals.decisions import Remember
from approvals.models import Policy, Source
from runs import account_settings, agents, audit, audit_check, control, keys, servers, tasks, tool_words
from runs.access import Actor
from runs.agents import AgentValues
from runs.models import Account, Agent, Ledger, LedgerEntry, Role, Round, Run, Server, User
from runs.requests import APPROVAL_KEY
from runs.risk import Risk
from runs.round_rows import Decider
from runs.servers import ServerValues
from runs.tool_standing import Words
from tests.services.policy_helpers import rule

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
DESK = ServerValues(name="desk", entry="desk", trusted=True)
ALLOW = {APPROVAL_KEY: {"action": "accept", "content": {"decision": "allow"}}}


def told(account: Account) -> list[tuple[str, str, str]]:
    entries = LedgerEntry.objects.filter(account=account).order_by("seq")
    return list(entries.values_list("action", "subject", "actor_name"))


def last(account: Account) -> LedgerEntry:
    return LedgerEntry.objects.filter(account=account).latest("seq")


def test_a_server_is_told_of_from_its_registration_to_its_removal_and_its_secrets_are_not(
    acting: Acting, ada: User, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.M3.stdio_servers, "crm", {"command": "crm", "variables": ["CRM_KEY"]})
    actor = acting(ada)
    values = ServerValues(name="crm", entry="crm", variables={"CRM_KEY": "hidden-1"})
    server = servers.register(actor, values)
    servers.update(actor, server.pk, ServerValues(name="crm", entry="crm"))
    servers.update(actor, server.pk, ServerValues(name="crm", entry="crm", variables={"CRM_KEY": "hidden-2"}))
    servers.set_trusted(actor, server.pk, True)
    subject = f"server {server.pk}"
    servers.remove(actor, server.pk)

    assert told(account) == [
        ("server.registered", subject, "ada"),
        ("server.changed", subject, "ada"),
        ("server.changed", subject, "ada"),
        ("server.removed", subject, "ada"),
    ], "saving it as it was is no change"
    facts = list(LedgerEntry.objects.order_by("seq").values_list("facts", flat=True))
    assert [one.get("secrets_changed") for one in facts] == [False, True, False, None]
    assert facts[0]["variables"] == ["CRM_KEY"]
    assert (facts[1]["trusted"], facts[2]["trusted"]) == (False, True)
    assert "hidden" not in repr(facts)
    assert list(audit_check.check(account)) == []


def test_a_server_that_the_host_brings_along_is_told_of_as_the_installation_s(desk: Server) -> None:
    servers.put(desk.account, ServerValues(name="desk", entry="desk"))
    assert told(desk.account) == [], "nothing has changed"
    Server.objects.update(identity="sha256:older")
    servers.put(desk.account, ServerValues(name="desk", entry="desk"))
    assert told(desk.account) == [("server.changed", f"server {desk.pk}", "installation")]


def test_a_word_on_a_tool_is_told_once(acting: Acting, ada: User, desk: Server) -> None:
    tool = desk.tools.get(name="refund")
    for _ in range(2):
        tool_words.say(acting(ada), desk.pk, tool.pk, Words(risk=Risk.BLOCKED))
    assert told(desk.account) == [("tool.judged", f"tool {tool.pk}", "ada")]
    assert last(desk.account).facts["risk"] == "blocked"
    assert last(desk.account).facts["tool"] == "desk:refund"


def test_keys_are_told_of_without_their_secrets(acting: Acting, ada: User, account: Account) -> None:
    made = keys.create(acting(ada), "nightly", role=Role.OPERATOR, days=3)
    keys.revoke(acting(ada), made.key.pk)
    keys.revoke(acting(ada), made.key.pk)
    other = keys.issue(account, "host's", role=Role.VIEWER)
    keys.invalidate(other.key)

    assert told(account) == [
        ("key.made", f"key {made.key.pk}", "ada"),
        ("key.revoked", f"key {made.key.pk}", "ada"),
        ("key.made", f"key {other.key.pk}", "installation"),
        ("key.revoked", f"key {other.key.pk}", "installation"),
    ]
    facts = LedgerEntry.objects.get(seq=1).facts
    assert (facts["name"], facts["role"], facts["public_id"]) == ("nightly", "operator", made.key.public_id)
    hidden = made.secret.partition(f"{made.key.public_id}_")[2]
    assert len(hidden) > 30
    assert hidden not in repr(facts)


def test_agents_tasks_and_settings_are_told_of_with_their_modes(
    acting: Acting, ada: User, account: Account
) -> None:
    actor = acting(ada)
    values = AgentValues(name="Mail", definition='{"steps": [{"say": "Hi"}]}', default_mode="plan")
    agent = agents.save(actor, None, values)
    task = tasks.create(actor, agent.pk, {"name": "T", "instructions": "Do it", "default_mode": "approval"})
    number, task_number = agent.pk, task.pk
    tasks.remove(actor, task.pk)
    account_settings.change(actor, {"require_end_user_id": True})
    agents.remove(actor, agent.pk)

    assert told(account) == [
        ("agent.saved", f"agent {number}", "ada"),
        ("task.saved", f"task {task_number}", "ada"),
        ("task.removed", f"task {task_number}", "ada"),
        ("account.changed", f"account {account.pk}", "ada"),
        ("agent.removed", f"agent {number}", "ada"),
    ]
    assert LedgerEntry.objects.get(seq=1).facts["default_mode"] == "plan"
    assert LedgerEntry.objects.get(seq=2).facts["default_mode"] == "approval"


def test_a_rule_that_was_remembered_is_told_of_in_the_transaction_of_the_decision(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    round_ = make_round()
    decisions.decide(
        acting(alice), round_.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run", confirmed=True)
    )
    policy = Policy.objects.get()
    assert told(round_.account) == [("policy.made", f"policy {policy.pk}", "alice")]


def test_the_end_of_every_turn_is_told_of_with_the_last_hash_of_the_run(
    make_run: MakeRun, alice: User
) -> None:
    run = make_run()
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))
    control.reply(run.pk, "Once more", user=alice)
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))

    heads = LedgerEntry.objects.filter(action=audit.HEAD, subject=f"run {run.pk}").order_by("seq")
    run.refresh_from_db()
    hashes = dict(run.events.values_list("seq", "hash"))
    assert [hashes[one.facts["seq"]] == one.facts["hash"] for one in heads] == [True, True]
    assert heads[1].facts == {"seq": run.event_seq, "hash": run.event_head}


def test_a_run_is_deleted_without_a_hole_in_the_proof(
    make_run: MakeRun, alice: User, account: Account
) -> None:
    run, kept = make_run(), make_run()
    for one in (run, kept):
        control.cancel(one.pk, decider=Decider(user=alice, via="page"))
    run.refresh_from_db()
    number = run.pk
    control.delete(number, decider=Decider(user=alice, via="api"))

    assert last(account).facts == {"seq": run.event_seq, "hash": run.event_head}
    assert told(account)[-1] == (audit.DELETED, f"run {number}", "alice")
    assert list(audit_check.check(account)) == []


def test_a_change_that_is_undone_leaves_no_entry_and_no_gap(account: Account, ada: User) -> None:
    audit.note(account, ada, "test.first", "x 1")
    with transaction.atomic():
        audit.note(account, ada, "test.undone", "x 2")
        transaction.set_rollback(True)
    audit.note(account, ada, "test.second", "x 3")

    assert [action for action, _, _ in told(account)] == ["test.first", "test.second"]
    assert list(LedgerEntry.objects.order_by("seq").values_list("seq", flat=True)) == [1, 2]
    assert list(audit_check.check(account)) == []


def test_accounts_have_chains_of_their_own(account: Account, other_account: Account) -> None:
    for one in (account, other_account, account):
        audit.note(one, None, "test", "x 1")
    assert dict(Ledger.objects.values_list("account__slug", "seq")) == {"acme": 2, "globex": 1}


def test_what_the_user_was_called_stays_when_the_user_is_gone(account: Account, ada: User) -> None:
    audit.note(account, ada, "test", "x 1")
    ada.delete()
    entry = LedgerEntry.objects.get()
    assert (entry.actor, entry.actor_name) == (None, "ada")
    assert list(audit_check.check(account)) == []


@pytest.mark.django_db(transaction=True)
def test_eight_threads_write_one_ledger_without_gaps_or_forks(account: Account) -> None:
    together = threading.Barrier(8)

    def write(number: int) -> None:
        try:
            together.wait(20)
            for count in range(5):
                with transaction.atomic():
                    audit.note(account, None, "test.thread", f"thread {number}", {"count": count})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    seqs = list(LedgerEntry.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, 41))
    assert list(audit_check.check(account)) == []


def test_a_rule_of_the_installation_is_told_of_as_such(account: Account, desk: Server) -> None:
    policies.grant(None, rule(account), source=Source.API)
    assert told(account)[0][2] == "installation"


def test_facts_may_hold_any_text_and_any_number(account: Account) -> None:
    facts: dict[str, Any] = {
        "text": "Grüße 👋 \x00",
        "number": 0.1,
        "big": 2**70,
        "none": None,
        "list": [1, {}],
    }
    audit.note(account, None, "test", "x 1", facts)
    assert last(account).facts == facts
    assert list(audit_check.check(account)) == []


def test_an_agent_that_is_saved_keeps_long_texts_out_of_the_ledger(
    acting: Acting, ada: User, agent: Agent
) -> None:
    definition = '{"steps": [{"say": "secret recipe"}]}'
    agents.save(
        acting(ada), agent, AgentValues(name=agent.name, definition=definition, instructions="secret")
    )
    assert "secret" not in repr(last(agent.account).facts)
