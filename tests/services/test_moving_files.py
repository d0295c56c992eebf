"""An import takes the whole of a file as it was written, or nothing and says why."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from approvals.models import Policy
from m3web.moving import exporting, importing, secrets, tables
from m3web.moving.refusals import Refused
from runs.models import Account, Event, Membership, Round, Run, Server, User
from tests.services.moving import lines_of, load, wipe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(
    tmp_path: Path, account: Account, alice: User, make_round: Callable[..., Round], desk: Server
) -> Path:
    """The account with one pending approval, a rule and a secret, handed over and gone from here."""
    Policy.objects.create(account=account, effect="deny", scope="account", target_server="desk", source="api")
    Server.objects.filter(pk=desk.pk).update(variables={"TOKEN": "hush"})
    make_round()
    path = tmp_path / "acme.jsonl"
    exporting.hand_over(account, path, alone=True)
    wipe(account)
    return path


def refused(path: Path, words: str) -> None:
    with pytest.raises(Refused, match=words):
        load(path)
    assert not Account.objects.filter(slug="acme").exists()
    assert not Event.objects.exists()


def changed(path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    """The same file with other lines."""
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    return path


def sealed(path: Path, change: Callable[[list[Any]], None]) -> Path:
    """The file as a writer with the right secrets would have written other content."""
    lines = [json.loads(line) for line in path.read_text().splitlines()[:-1]]
    change(lines)
    body = "".join(json.dumps(line) + "\n" for line in lines)
    digest = hashlib.sha256(body.encode()).hexdigest()
    end = {"end": "m3web account", "sha256": digest, "seal": secrets.own().seal(digest)}
    path.write_text(body + json.dumps(end) + "\n")
    return path


def test_it_is_here_again_with_everything(file: Path) -> None:
    done = load(file)
    account = Account.objects.get(slug="acme")
    assert account.closed_at is None
    assert {label: tables.rows_of(label, account).count() for label in tables.labels()} == {
        **done.head.rows,
        "runs.ledgerentry": done.head.rows["runs.ledgerentry"] + 1,
    }
    assert Server.objects.get(name="desk").variables == {"TOKEN": "hush"}


def test_a_trial_stores_nothing_and_finds_what_an_import_would(file: Path) -> None:
    assert load(file, only_check=True).head.slug == "acme"
    assert not Account.objects.exists()
    load(file)
    with pytest.raises(Refused, match="here already"):
        load(file, only_check=True)


@pytest.mark.parametrize("lines", [1, 2, -1])
def test_a_file_that_was_cut_off_is_refused(file: Path, lines: int) -> None:
    refused(changed(file, lambda all_: all_[:lines]), "its end is missing")


def test_a_file_that_was_cut_off_within_a_line_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])
    refused(file, "its last line is cut off")


def test_an_empty_file_and_one_of_another_kind_are_refused(file: Path, tmp_path: Path) -> None:
    for text in ("", "{}\n", "[1]\n", '{"kind": "audit"}\n'):
        (tmp_path / "other").write_text(text)
        refused(tmp_path / "other", "is no exported account")
    (tmp_path / "other").write_bytes(b"\x00\xff\n")
    refused(tmp_path / "other", "no JSON")
    refused(tmp_path / "missing", "cannot be read")


def test_a_file_that_was_altered_is_refused(file: Path) -> None:
    refused(
        changed(file, lambda all_: [line.replace("operator", "admin") for line in all_]),
        "not as it was written",
    )


def test_lines_that_were_taken_out_or_added_are_noticed(file: Path) -> None:
    original = file.read_text()
    refused(changed(file, lambda all_: [*all_[:3], *all_[4:]]), "not as it was written")
    file.write_text(original)
    refused(changed(file, lambda all_: [*all_, all_[-1]]), "not as it was written")


def test_counts_are_held_against_the_rows(file: Path) -> None:
    refused(sealed(file, lambda lines: lines.pop(3)), "not as it was written")


def test_a_file_of_another_format_or_version_is_refused(file: Path) -> None:
    original = file.read_text()
    refused(sealed(file, lambda lines: lines[0].update(format=2, product="9.0")), "format 2 of version '9.0'")
    file.write_text(original)
    other = {"runs": ["0001_initial"], "approvals": []}
    refused(sealed(file, lambda lines: lines[0].update(migrations=other)), "0001_initial")


def test_a_file_of_an_installation_with_other_secrets_needs_those(
    file: Path, tmp_path: Path, settings: LazySettings
) -> None:
    (tmp_path / "secret_key").write_text(f"{settings.SECRET_KEY}\n")
    (tmp_path / "encryption_salt").write_text(f"{settings.SALT_KEY[0]}\n")
    theirs = secrets.in_folder(tmp_path)
    settings.SECRET_KEY = "another one" * 5
    refused(file, "another M3_SECRET_KEY or M3_ENCRYPTION_SALT")
    importing.load(file, theirs)
    assert Account.objects.get(slug="acme")


def test_a_folder_without_secrets_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="secret_key and encryption_salt"):
        secrets.in_folder(tmp_path)


def test_an_account_that_is_here_already_is_not_touched(file: Path) -> None:
    load(file)
    before = list(Run.objects.values())
    with pytest.raises(Refused, match="There is an account acme here already"):
        load(file)
    assert list(Run.objects.values()) == before


def test_ids_that_are_taken_here_are_refused_before_anything_is_stored(file: Path) -> None:
    number = json.loads(file.read_text().splitlines()[0])["account"]
    Account.objects.create(pk=number, name="Globex", slug="globex")
    refused(file, f"There is a account {number} here already")


def test_somebody_else_of_the_same_name_is_refused(file: Path) -> None:
    User.objects.create_user(pk=10_000, username="alice")
    refused(file, "that id or name is somebody else's")


def test_somebody_who_is_here_already_gets_a_membership_and_keeps_the_password(file: Path) -> None:
    (alice,) = [row for label, row in map(tuple, lines_of(file)) if label == "runs.user"]
    User.objects.create(pk=alice["id"], username="alice", password="of here")
    done = load(file)
    assert done.notes[0] == "alice was here already and keeps the password of here."
    assert User.objects.get(username="alice").password == "of here"
    assert Membership.objects.get(user__username="alice").account.slug == "acme"


@pytest.mark.parametrize("somebody", [False, True])
def test_a_superuser_stays_one_only_where_nobody_was_before(file: Path, somebody: bool) -> None:
    def raise_(lines: list[Any]) -> None:
        [line[1].update(is_superuser=True, is_staff=True) for line in lines[1:] if line[0] == "runs.user"]

    if somebody:
        User.objects.create_user(pk=10_000, username="host")
    done = load(sealed(file, raise_))
    alice = User.objects.get(username="alice")
    assert (alice.is_superuser, alice.is_staff) == (not somebody, not somebody)
    assert ("alice may not use /admin/ here; who may was decided before." in done.notes) is somebody


def test_a_row_that_refers_to_nothing_is_refused(file: Path) -> None:
    def without_agent(lines: list[Any]) -> None:
        [line[1].update(agent_id=10_000) for line in lines[1:] if line[0] == "runs.run"]

    refused(sealed(file, without_agent), "The database refuses it")


def test_a_row_that_the_database_does_not_take_is_named(file: Path) -> None:
    def unknown_status(lines: list[Any]) -> None:
        [line[1].update(status="lost") for line in lines[1:] if line[0] == "runs.round"]

    refused(sealed(file, unknown_status), "The database refuses round [0-9a-f]{32}")


def test_columns_and_tables_of_no_version_are_refused(file: Path) -> None:
    original = file.read_text()
    refused(sealed(file, lambda lines: lines[1][1].update(more=1)), "columns are not those of this version")
    file.write_text(original)

    def unknown_table(lines: list[Any]) -> None:
        lines.insert(1, ["axes.accesslog", {}])
        lines[0]["rows"]["axes.accesslog"] = 1

    refused(sealed(file, unknown_table), "a table 'axes.accesslog'")


def test_a_server_that_this_host_does_not_offer_is_named(file: Path, settings: LazySettings) -> None:
    settings.M3.stdio_servers = {}
    assert any("no entry “desk” any more" in note for note in load(file).notes)
    wipe(Account.objects.get())
    settings.M3.stdio_servers = {"desk": {"command": "another"}}
    assert any(note.startswith("Server desk starts another command here") for note in load(file).notes)
