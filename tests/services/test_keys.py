"""API keys: kept as a fingerprint, valid until revoked or expired, and never more than their role."""

from __future__ import annotations

import datetime as dt

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from runs import keys
from runs.access import Actor, actor_for
from runs.errors import ModelValidationError, NotAllowed, NotFound, StateConflict
from runs.models import Account, ApiKey, Role, User


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def test_a_new_key_finds_its_row_and_is_stored_nowhere(admin: Actor) -> None:
    made = keys.create(admin, "billing", role=Role.OPERATOR)
    assert made.secret.startswith("m3_")
    assert keys.find(made.secret) == made.key
    kept = " ".join(str(value) for row in (made.key, made.key.user) for value in vars(row).values())
    assert made.secret.split("_", 2)[2] not in kept


@pytest.mark.parametrize("change", ["", "x", "m3_", "m3__", "m3_nobody_secret", "other_abc_def"])
def test_what_is_no_key_finds_nothing(admin: Actor, change: str) -> None:
    keys.create(admin, "billing")
    assert keys.find(change) is None


def test_the_public_part_alone_or_with_another_secret_finds_nothing(admin: Actor) -> None:
    made, other = keys.create(admin, "one"), keys.create(admin, "two")
    assert keys.find(f"m3_{made.key.public_id}_") is None
    assert keys.find(f"m3_{made.key.public_id}_{other.secret.split('_', 2)[2]}") is None


def test_a_revoked_key_finds_nothing_and_its_name_is_free_again(admin: Actor) -> None:
    made = keys.create(admin, "billing")
    keys.revoke(admin, made.key.pk)
    assert keys.find(made.secret) is None
    assert keys.find(keys.create(admin, "billing").secret) is not None


def test_a_key_ends_on_its_day(admin: Actor) -> None:
    made = keys.create(admin, "billing", days=1)
    assert keys.find(made.secret) is not None
    ApiKey.objects.update(expires_at=timezone.now())
    assert keys.find(made.secret) is None


def test_use_is_noted_at_most_once_a_minute(admin: Actor) -> None:
    made = keys.create(admin, "billing")
    keys.find(made.secret)
    first = ApiKey.objects.get().last_used_at
    keys.find(made.secret)
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=timezone.now() - dt.timedelta(minutes=2))
    keys.find(made.secret)
    assert ApiKey.objects.get().last_used_at > timezone.now() - dt.timedelta(minutes=1)


def test_only_admins_make_and_revoke_keys_and_only_of_their_account(
    admin: Actor, alice: User, otto: User
) -> None:
    made = keys.create(admin, "billing")
    for stranger, refusal in ((actor_for(alice), NotAllowed), (actor_for(otto), (NotFound, NotAllowed))):
        with pytest.raises(refusal):
            keys.revoke(stranger, made.key.pk)
    with pytest.raises(NotAllowed):
        keys.create(actor_for(alice), "mine")
    assert keys.find(made.secret) is not None


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "two\nlines", "dis‮guised"])
def test_a_name_that_cannot_be_told_apart_is_refused(admin: Actor, name: str) -> None:
    with pytest.raises(ModelValidationError):
        keys.create(admin, name)
    assert not ApiKey.objects.exists()


def test_a_name_is_taken_once(admin: Actor) -> None:
    keys.create(admin, "billing")
    with pytest.raises(StateConflict, match="billing"):
        keys.create(admin, "billing")
    assert User.objects.filter(username__contains="API key").count() == 1


@pytest.mark.parametrize("days", [0, -1, 4000])
def test_a_time_out_of_range_is_refused(admin: Actor, days: int) -> None:
    with pytest.raises(ModelValidationError):
        keys.create(admin, "billing", days=days)


def test_nobody_can_sign_in_as_a_key(admin: Actor) -> None:
    made = keys.create(admin, "billing")
    assert not made.key.user.has_usable_password()


def test_the_command_prints_the_key_alone_on_standard_output(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("apikey", "create", "nightly", "--role", "viewer")
    printed = capsys.readouterr().out.strip()
    key = keys.find(printed)
    assert key is not None
    assert (key.name, key.role) == ("nightly", "viewer")
    call_command("apikey", "list")
    assert "nightly" in capsys.readouterr().out
    call_command("apikey", "revoke", key.public_id)
    assert keys.find(printed) is None


def test_the_command_asks_which_account_if_there_are_several(account: Account) -> None:
    Account.objects.create(name="Other", slug="other")
    with pytest.raises(CommandError, match="acme, other"):
        call_command("apikey", "create", "nightly")
    call_command("apikey", "create", "nightly", "--account", "other")
    assert ApiKey.objects.get().account.slug == "other"
