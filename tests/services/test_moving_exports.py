"""An export closes the account and writes all of it, or changes nothing; a copy is of one moment."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.models import Model

from approvals.gate import PolicyGate
from m3web.moving import exporting
from m3web.moving.files import Writer
from m3web.moving.refusals import Refused
from runs import closing, lease
from runs.engines.in_process import InProcess
from runs.models import Account, Agent, LedgerEntry, Membership, Role, Run, Server, Task, User
from tests.people import person
from tests.services.moving import lines_of, load, wipe

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_copy_leaves_the_account_open_and_comes_closed(
    tmp_path: Path, account: Account, make_run: Any
) -> None:
    run = make_run()
    exporting.copy(account, tmp_path / "copy")
    assert Account.objects.get().closed_at is None
    wipe(account)
    load(tmp_path / "copy")
    copied = Account.objects.get()
    assert copied.closed_at is not None
    assert Run.objects.get(pk=run.pk).lease_until == closing.NEVER
    with pytest.raises(Refused, match="came as a copy"):
        exporting.hand_over(copied, tmp_path / "again", alone=True)


def test_a_copy_is_of_one_moment_and_nobody_waits_for_it(
    tmp_path: Path, account: Account, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_run()
    begun: list[int] = []
    counters = exporting.sequences.highest

    def meanwhile() -> dict[str, int]:
        """Between the counts and the rows somebody else starts a run."""
        with ThreadPoolExecutor(1) as pool:
            begun.append(pool.submit(lambda: make_run().pk).result(timeout=60))
            pool.submit(connections.close_all).result()
        return counters()

    monkeypatch.setattr(exporting.sequences, "highest", meanwhile)
    exporting.copy(account, tmp_path / "acme")
    assert Run.objects.filter(pk__in=begun).count() == 1
    assert [row["id"] for label, row in lines_of(tmp_path / "acme") if label == "runs.run"] == [first.pk]


def test_nobody_exports_while_a_process_drives_runs(tmp_path: Path, account: Account, make_run: Any) -> None:
    working = InProcess(PolicyGate())
    working.lock()
    assert lease.claim(make_run().pk, working.owner)
    try:
        with pytest.raises(
            CommandError,
            match=r"Another process already works on [^ ]+\. Stop it first\.$|is at work on runs of Acme",
        ):
            call_command("export", str(tmp_path / "acme"))
    finally:
        working.unlock()
    assert Account.objects.get().closed_at is None
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_no_file_and_the_account_open(
    tmp_path: Path, account: Account, desk: Server, settings: LazySettings
) -> None:
    Server.objects.filter(pk=desk.pk).update(headers={"X": "hush"})
    settings.SECRET_KEY = "another one" * 5
    with pytest.raises(Refused, match=f"A secret of runs.server {desk.pk} cannot be read"):
        exporting.hand_over(account, tmp_path / "acme", alone=True)
    assert list(tmp_path.iterdir()) == []
    assert Account.objects.get().closed_at is None


@pytest.mark.parametrize("size", [10, 100_000], ids=["at the end", "on the way"])
def test_a_full_disk_is_one_sentence_and_leaves_no_file_and_the_account_open(
    tmp_path: Path, account: Account, agent: Agent, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    Task.objects.create(account=account, agent=agent, instructions="x" * size)
    real = os.open

    def on_a_full_disk(path: Any, flags: int, *mode: int) -> int:
        """The name is there, and nothing fits into the file."""
        opened = real(path, flags, *mode)
        if not str(path).endswith(".part"):
            return opened
        os.close(opened)
        return real("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", on_a_full_disk)
    with pytest.raises(CommandError, match="acme cannot be written: No space left on device"):
        call_command("export", str(tmp_path / "acme"))
    assert list(tmp_path.iterdir()) == []
    assert Account.objects.get().closed_at is None


@pytest.mark.parametrize("leads_to", ["somebody's", "nothing"])
def test_a_link_where_the_unfinished_file_would_be_is_not_followed(
    tmp_path: Path, account: Account, leads_to: str
) -> None:
    (tmp_path / "somebody's").write_text("mine")
    link = tmp_path / ".acme.part"
    link.symlink_to(tmp_path / leads_to)
    with pytest.raises(CommandError, match=r"\.acme\.part is there already"):
        call_command("export", str(tmp_path / "acme"))
    assert (tmp_path / "somebody's").read_text() == "mine"
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".acme.part", "somebody's"]
    assert Account.objects.get().closed_at is None


def test_an_unfinished_file_of_another_export_is_left_to_it(tmp_path: Path, account: Account) -> None:
    (tmp_path / ".acme.part").write_text("half of")
    with pytest.raises(CommandError, match="another export to this name is at work, or one was cut off"):
        call_command("export", str(tmp_path / "acme"))
    assert (tmp_path / ".acme.part").read_text() == "half of"
    assert Account.objects.get().closed_at is None


def test_a_file_whose_name_may_not_last_is_taken_back(
    tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Writer, "_keep_name", fails)
    with pytest.raises(Refused, match="acme cannot be written: Input/output error"):
        exporting.hand_over(account, tmp_path / "acme", alone=True)
    assert list(tmp_path.iterdir()) == []
    assert Account.objects.get().closed_at is None


def test_an_export_says_how_the_account_is_opened_again(
    tmp_path: Path, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("export", str(tmp_path / "copy"), "--copy")
    call_command("export", str(tmp_path / "acme"))
    assert capsys.readouterr().out.count("`manage.py reopen --nowhere-else`") == 2


def test_a_file_that_is_there_is_not_overwritten_and_the_account_stays_open(
    tmp_path: Path, account: Account
) -> None:
    (tmp_path / "acme").write_text("mine")
    with pytest.raises(Refused, match="is there already"):
        exporting.hand_over(account, tmp_path / "acme", alone=True)
    assert (tmp_path / "acme").read_text() == "mine"
    assert Account.objects.get().closed_at is None


def test_an_account_that_was_handed_over_can_be_written_again(tmp_path: Path, account: Account) -> None:
    first = exporting.hand_over(account, tmp_path / "one", alone=True)
    second = exporting.hand_over(Account.objects.get(), tmp_path / "two", alone=True)
    assert first.rows == second.rows
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600


def test_accounts_that_were_handed_over_one_after_the_other_follow_each_other_into_one_installation(
    tmp_path: Path, account: Account, other_account: Account
) -> None:
    exporting.hand_over(account, tmp_path / "acme", alone=True)
    exporting.hand_over(other_account, tmp_path / "globex", alone=True)
    for here in (account, other_account):
        wipe(here)
    begin_ids_anew(LedgerEntry)  # as in a database that never had a row
    load(tmp_path / "acme")
    load(tmp_path / "globex")
    assert Account.objects.filter(closed_at=None).count() == 2


def begin_ids_anew(model: type[Model]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"ALTER SEQUENCE {model._meta.db_table}_id_seq RESTART")
        else:
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [model._meta.db_table])


def test_reopening_needs_the_word_that_it_goes_on_nowhere_else(tmp_path: Path, account: Account) -> None:
    exporting.hand_over(account, tmp_path / "acme", alone=True)
    with pytest.raises(CommandError, match="--nowhere-else"):
        call_command("reopen")
    call_command("reopen", "--nowhere-else")
    assert Account.objects.get().closed_at is None


def test_only_this_account_is_in_the_file(
    tmp_path: Path, account: Account, other_account: Account, otto: User
) -> None:
    person("both", account, Role.VIEWER)
    Membership.objects.create(account=other_account, user=User.objects.get(username="both"), role="admin")
    exporting.copy(account, tmp_path / "acme")
    text = (tmp_path / "acme").read_text()
    assert "Globex" not in text
    assert "otto" not in text
    assert text.count('"runs.membership",{') == 1
