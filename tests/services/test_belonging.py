"""A database belongs to the secrets with which it was made; a process with others does not start on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection

from m3web import belonging, preparing
from m3web.moving.secrets import own
from runs.models import Account, SecretProof, Server, WebhookEndpoint
from tests.engines.test_commands import run

pytestmark = pytest.mark.django_db(transaction=True)

OTHERS = "This database belongs to other secrets: set M3_SECRET_KEY and M3_ENCRYPTION_SALT as on the machine"


@pytest.fixture
def filled(desk: Server, account: Account) -> Server:
    """What is encrypted, with the secrets of the tests."""
    Server.objects.filter(pk=desk.pk).update(headers={"X-Key": "hush"})
    WebhookEndpoint.objects.create(account=account, url="https://example.com/hook", secret="s" * 32)
    return desk


def other_secrets(settings: LazySettings, name: str) -> None:
    """As in a process on another machine; fields keep the key that they have derived."""
    if name == "M3_SECRET_KEY":
        settings.SECRET_KEY = "another key " * 4
    else:
        settings.SALT_KEY = ["another salt " * 4]


def start() -> None:
    preparing.bring_up_to_date(people=False)


def test_the_first_start_leaves_a_proof_with_which_nothing_can_be_read_and_the_next_one_takes_it() -> None:
    start()
    (kept,) = SecretProof.objects.values_list("proof", flat=True)
    start()
    assert list(SecretProof.objects.values_list("proof", flat=True)) == [kept]
    assert len(kept) == 64
    assert kept not in (own().secret_key, own().salt, own().seal(""), own().fernet._signing_key.hex())


@pytest.mark.parametrize("name", ["M3_SECRET_KEY", "M3_ENCRYPTION_SALT"])
def test_a_start_with_another_secret_is_refused_before_anything_is_changed(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    start()
    other_secrets(settings, name)
    monkeypatch.setattr(preparing, "call_command", lambda *_, **__: pytest.fail("it was migrated"))
    with pytest.raises(CommandError, match=OTHERS):
        start()
    if connection.vendor == "postgresql":
        assert not advisory_locks(), "nobody waits for the one that was refused"


def advisory_locks() -> int:
    """How many are held in this database; others on the same server prepare theirs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_locks.database = pg_database.oid "
            "WHERE locktype = 'advisory' AND granted AND datname = current_database()"
        )
        (held,) = cursor.fetchone()
    return int(held)


def test_an_older_database_whose_secrets_we_can_read_gets_its_proof(filled: Server) -> None:
    start()
    assert SecretProof.objects.get().proof == own().proof()


def test_an_older_database_whose_secrets_we_cannot_read_is_refused_and_gets_none(
    filled: Server, settings: LazySettings
) -> None:
    other_secrets(settings, "M3_SECRET_KEY")
    with pytest.raises(CommandError, match=OTHERS):
        start()
    assert not SecretProof.objects.exists()


def test_a_second_machine_with_secrets_of_its_own_is_told_which_it_needs(
    tmp_path: Path, postgres_database: str
) -> None:
    url = {"DATABASE_URL": postgres_database}
    ours = {
        "M3_SECRET_KEY": "one key for all of them " * 2,
        "M3_ENCRYPTION_SALT": "one salt for all of them " * 2,
    }
    assert run(tmp_path / "first", "shell", "-c", MADE, **url, **ours) == (0, "")
    for command in ("up", "web", "worker"):
        folder = tmp_path / command
        code, said = run(folder, command, **url)
        assert code == 1
        assert said.startswith(f"CommandError: {OTHERS}")
        assert f"copy its files secret_key and encryption_salt into {folder}." in said
        assert said.count("\n") == 1


MADE = "from m3web.preparing import bring_up_to_date; bring_up_to_date(people=False)"


def test_a_restored_sqlite_file_without_its_secrets_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, "shell", "-c", MADE) == (0, "")
    for name in ("secret_key", "encryption_salt"):
        (tmp_path / name).unlink()
    code, said = run(tmp_path, "up")
    assert code == 1
    assert OTHERS in said


def test_after_a_loss_the_database_is_taken_over_and_what_is_to_be_entered_anew_is_said(
    filled: Server, settings: LazySettings, capsys: pytest.CaptureFixture[str]
) -> None:
    start()
    hook = WebhookEndpoint.objects.get()
    readable = [(model.__name__, field.name) for model, field, _ in belonging.unreadable()]
    other_secrets(settings, "M3_ENCRYPTION_SALT")
    with pytest.raises(CommandError, match="--lost"):
        call_command("secrets")
    lost = {(model.__name__, field.name) for model, field, _ in belonging.unreadable()}
    SecretProof.objects.all().delete()

    call_command("secrets", "--lost")

    said = capsys.readouterr().out
    assert readable == []
    assert lost == {("Server", "headers"), ("WebhookEndpoint", "secret")}
    assert f"Enter anew: server {filled.pk}: headers\n" in said
    assert f"Enter anew: webhook {hook.pk}: secret\n" in said
    assert Server.objects.get(pk=filled.pk).headers == {}
    assert WebhookEndpoint.objects.get().secret != "s" * 32
    assert SecretProof.objects.get().proof == own().proof()
