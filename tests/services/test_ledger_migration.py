"""An installation from before the ledger gets one that vouches for the histories that there are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.apps import apps

from runs import audit_check
from runs.models import Account, Event, LedgerEntry, Run, User

MakeRun = Callable[..., Run]


def test_the_histories_that_there_are_are_vouched_for_from_then_on(
    make_run: MakeRun, account: Account
) -> None:
    run, other = make_run(), make_run()
    import_module("runs.migrations.0008_ledger").note_heads(apps, None)

    heads = {entry.subject: entry.facts for entry in LedgerEntry.objects.filter(account=account)}
    run.refresh_from_db()
    assert heads.keys() == {f"run {run.pk}", f"run {other.pk}"}
    assert heads[f"run {run.pk}"] == {"seq": run.event_seq, "hash": run.event_head}
    assert list(audit_check.check(account)) == []
    Event.objects.filter(run=run).update(hash="sha256:0")
    assert [problem.chain for problem in audit_check.check(account)] == [f"run {run.pk}"]


def test_what_was_recorded_of_rules_is_carried_over_in_its_order(account: Account, ada: User) -> None:
    at = dt.datetime(2026, 5, 6, tzinfo=dt.UTC)
    rows = [
        SimpleNamespace(
            account_id=account.pk,
            rule_id=7,
            change=change,
            sentence="Allow desk.",
            details=details,
            actor_id=actor,
            actor_name=name,
            at=at,
        )
        for change, details, actor, name in [
            ("made", {}, None, "installation"),
            ("suspended", {"reason": "Not now."}, ada.pk, "ada"),
        ]
    ]
    import_module("approvals.migrations.0004_policy_changes_in_ledger").carry_over(Before(rows), None)

    told = LedgerEntry.objects.order_by("seq").values_list(
        "action", "subject", "facts", "actor", "actor_name"
    )
    assert list(told) == [
        ("policy.made", "policy 7", {"sentence": "Allow desk."}, None, "installation"),
        ("policy.suspended", "policy 7", {"sentence": "Allow desk.", "reason": "Not now."}, ada.pk, "ada"),
    ]
    assert {entry.at for entry in LedgerEntry.objects.all()} == {at}
    assert list(audit_check.check(account)) == []


class Before:
    """The models as they were, with the table that is gone by now."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def get_model(self, app: str, name: str) -> Any:
        if name != "PolicyChange":
            return apps.get_model(app, name)
        return SimpleNamespace(objects=self)

    def order_by(self, field: str) -> Before:
        assert field == "pk"
        return self

    def iterator(self, chunk_size: int) -> list[Any]:
        return self.rows
