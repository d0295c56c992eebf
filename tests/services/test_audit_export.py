"""`manage.py audit export`: what somebody else needs to check the histories, with nothing but the documented format.

`Verifier` is written from docs/audit.md and uses nothing of the product.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from approvals import policies
from approvals.models import Source
from runs import audit_export, control, events
from runs.models import Account, Event, Run, User
from runs.round_rows import Decider
from tests.services.policy_helpers import rule

MakeRun = Callable[..., Run]


class Verifier:
    """Reads an export line by line and says what is wrong with it."""

    def __init__(self) -> None:
        self.heads: dict[int, dict[int, str]] = {}
        self.chain: tuple[str, int] | None = None
        self.seq, self.before = 0, ""
        self.end: tuple[int, str] | None = None

    def problems(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            row = json.loads(line)
            kind = row.pop("kind")
            if kind in ("account", "run"):
                yield from self._closed()
                self.chain = (kind, row[kind])
                self.seq, self.before, self.end = 0, "", (row["seq"], row["hash"])
            else:
                yield from self._link(kind, row)
        yield from self._closed()

    def _link(self, kind: str, row: dict[str, Any]) -> Iterator[str]:
        told = row.pop("hash")
        covered = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if told != "sha256:" + hashlib.sha256(covered.encode()).hexdigest():
            yield f"{self.chain} {row['seq']}: hash"
        if (row["seq"], row["previous"]) != (self.seq + 1, self.before):
            yield f"{self.chain} {row['seq']}: place"
        self.seq, self.before = row["seq"], told
        if kind == "ledger" and row["action"] == "run.head":
            run = int(row["subject"].removeprefix("run "))
            self.heads.setdefault(run, {})[row["facts"]["seq"]] = row["facts"]["hash"]
        if kind == "event" and self.heads.get(row["run"], {}).get(row["seq"], told) != told:
            yield f"{self.chain} {row['seq']}: head"

    def _closed(self) -> Iterator[str]:
        if self.chain and self.end != (self.seq, self.before):
            yield f"{self.chain}: end"


@pytest.fixture
def run(make_run: MakeRun, alice: User) -> Run:
    policies.grant(None, rule(make_run().account), source=Source.API)
    run = make_run("Grüße 👋 \x00 \u2028")
    events.record(run, "test", {"number": 0.1, "big": 10**30, "one": 1.0, "none": None}, actor=alice)
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))
    run.refresh_from_db()
    return run


def exported(*options: str) -> list[str]:
    out = StringIO()
    call_command("audit", "export", *options, stdout=out)
    return out.getvalue().split("\n")[:-1]


def test_somebody_else_can_verify_an_export(run: Run) -> None:
    assert list(Verifier().problems(exported())) == []


def test_everything_is_exported_once_and_in_order(run: Run, account: Account) -> None:
    rows = [json.loads(line) for line in exported("--account", "acme")]
    assert [row["kind"] for row in rows][:1] == ["account"]
    assert (rows[0]["format"], rows[0]["slug"], rows[0]["account"]) == (1, "acme", account.pk)
    assert [row["seq"] for row in rows if row["kind"] == "ledger"] == [1, 2]
    stored = list(Event.objects.order_by("run", "seq").values_list("run", "seq", "hash"))
    assert [(row["run"], row["seq"], row["hash"]) for row in rows if row["kind"] == "event"] == stored
    assert len(rows) == 1 + 2 + Run.objects.count() + len(stored)


@pytest.mark.parametrize(
    "field", ["payload", "actor", "type", "at", "turn", "previous", "hash", "run", "seq"]
)
def test_an_altered_line_is_found(run: Run, field: str) -> None:
    lines = exported()
    number = next(i for i, line in enumerate(lines) if json.loads(line).get("type") == "test")
    altered = {"seq": 9, "run": 9}.get(field, "sha256:0")
    lines[number] = json.dumps({**json.loads(lines[number]), field: altered})
    assert list(Verifier().problems(lines))


def test_a_line_that_was_taken_out_or_moved_is_found(run: Run) -> None:
    lines = exported()
    for number in range(1, len(lines)):
        assert list(Verifier().problems(lines[:number] + lines[number + 1 :])), lines[number]
    for number in range(1, len(lines) - 1):
        moved = [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]
        assert list(Verifier().problems(moved)), lines[number]


def test_a_run_that_was_written_anew_is_found_by_the_heads_of_the_ledger(run: Run) -> None:
    before = ""
    for event in Event.objects.filter(run=run).order_by("seq"):
        event.payload, event.previous = {"forged": True}, before
        event.hash = before = events.chain_hash(event)
        event.save()
    Run.objects.filter(pk=run.pk).update(event_head=before)
    assert list(Verifier().problems(exported())) == [f"('run', {run.pk}) {run.event_seq}: head"]


def test_what_is_appended_while_it_is_written_is_left_out_and_nothing_looks_broken(
    run: Run, monkeypatch: pytest.MonkeyPatch, make_run: MakeRun
) -> None:
    monkeypatch.setattr(audit_export, "_PAGE", 1)
    lines = []
    for line in audit_export.lines(run.account):
        lines.append(line)
        events.record(run, "test.meanwhile")
    assert list(Verifier().problems(lines)) == []
    assert len(lines) > 5


def test_an_account_without_history_has_one_line(other_account: Account) -> None:
    (line,) = exported("--account", "globex")
    assert (json.loads(line)["seq"], json.loads(line)["hash"]) == (0, "")


def test_accounts_are_exported_one_after_the_other_and_apart(run: Run, other_account: Account) -> None:
    kinds = [json.loads(line).get("slug") for line in exported()]
    assert [slug for slug in kinds if slug] == ["acme", "globex"]
    assert all('"acme"' not in line for line in exported("--account", "globex"))
