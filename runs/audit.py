"""The ledger of an account: who changed what, chained like the history of a run, and the heads of those histories.

A run's events tell of its calls; what is changed beside runs (rules, servers, words on tools, agents, keys, modes) is
noted here. At the end of every turn the run's last hash is noted too, so that its history can be neither rewritten nor
cut off without the ledger showing it, and the run can be deleted without a hole in the proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils import timezone

from runs import chains, row_writes, write_behind
from runs.canonical import digest
from runs.models import Account, Ledger, LedgerEntry, Run, User
from runs.prepared import Param, Rows

INSTALLATION: Final = "installation"
"""Who did it where no person is signed in."""

HEAD: Final = "run.head"
DELETED: Final = "run.deleted"

_OF_ACCOUNT = Param("account", Account._meta.pk)
_LEDGER: Rows[Ledger] = Rows(
    lambda: Ledger.objects.select_for_update(no_key=True).filter(account=_OF_ACCOUNT)
)


def note(
    account: Account | int,
    actor: User | None,
    action: str,
    subject: str,
    facts: Mapping[str, Any] | None = None,
    *,
    actor_name: str = INSTALLATION,
) -> LedgerEntry:
    """Append to the ledger, inside the transaction of the change that is told of.

    `action` is what was done (`policy.revoked`), `subject` to what (`policy 12`), `facts` what else a reader needs, as
    JSON and without secrets. `actor_name` counts where there is no `actor`.

    The lock on the ledger's row serialises everybody who writes in the account until they commit. So this comes last
    in a transaction: whoever holds the ledger and waits for a run could wait for somebody who waits for the ledger.
    """
    account_id = account if isinstance(account, int) else account.pk
    ledger = _locked(account_id, _LEDGER(account=account_id))
    return _append(ledger, actor, action, subject, dict(facts or {}), actor_name)


def _locked(account_id: int, found: Sequence[Ledger]) -> Ledger:
    if not found:
        Ledger.objects.get_or_create(account_id=account_id)
        found = _LEDGER(account=account_id)
    return found[0]


def _append(
    ledger: Ledger, actor: User | None, action: str, subject: str, facts: dict[str, Any], actor_name: str
) -> LedgerEntry:
    ledger.seq += 1
    entry = LedgerEntry(
        account_id=ledger.account_id,
        seq=ledger.seq,
        action=action,
        subject=subject,
        facts=facts,
        actor=actor,
        actor_name=actor.get_username() if actor else actor_name,
        at=timezone.now(),
        previous=ledger.head,
    )
    ledger.head = entry.hash = digest(content(entry))
    row_writes.insert(entry, key_needed=False)
    row_writes.save(ledger, ("seq", "head"))
    return entry


def note_head(run: Run) -> None:
    """Note how far the history of a run has come; `run` carries the number and hash of its last event.

    Where writes wait (`runs.write_behind`) it is noted after all of them, since it comes last.
    """
    account_id = run.account_id
    head = account_id, run_subject(run.pk), head_facts(run)
    write_behind.at_end(_note_heads, head, _LEDGER.asked(account=account_id), key=account_id)


def _note_heads(heads: Sequence[tuple[int, str, dict[str, Any]]], answers: Sequence[Any]) -> None:
    (found,) = answers
    for account_id, subject, facts in heads:
        _append(_locked(account_id, found), None, HEAD, subject, facts, "worker")


def head_facts(run: Run) -> dict[str, Any]:
    """The last event of a run, as its row has it."""
    return {"seq": run.event_seq, "hash": run.event_head}


def run_subject(run_id: int) -> str:
    return f"run {run_id}"


def content(entry: LedgerEntry) -> dict[str, Any]:
    """What the hash of an entry covers."""
    return chains.entry_content(
        account=entry.account_id,
        seq=entry.seq,
        action=entry.action,
        subject=entry.subject,
        facts=entry.facts,
        actor=entry.actor_name,
        at=entry.at,
        previous=entry.previous,
    )
