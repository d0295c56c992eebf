"""End users: the customers of the embedding application, by the id that it gave them.

One is made by first use, or with a profile. Removing one never touches the history: where runs, tasks or agents name
them the row stays, emptied, and comes back to life with the next use of the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone

from runs import access
from runs.access import Actor
from runs.errors import ModelValidationError, StateConflict
from runs.models import Account, EndUser, Role
from runs.models.exact import is_line

MAX_USER_ID = 200
PROFILE: Final = ("name", "email", "company", "metadata")
"""What an end user has beside the id."""


class EndUserExists(StateConflict):
    """There is an end user with this id already, perhaps since a run first named it (m8tes-http 3)."""

    code = "user_exists"


def end_user(account: Account, user_id: str | None) -> EndUser | None:
    """The end user with this id, created by first use; null and absent are alike, an empty string is a mistake.

    Nobody removes them until the caller's transaction ends: what it stores for them is there for whoever removes them.
    """
    if user_id is None:
        return None
    _check_id(user_id)
    return _held(account, user_id)


@transaction.atomic(savepoint=False)  # of its own only for callers who have none
def _held(account: Account, user_id: str) -> EndUser:
    rows = EndUser.objects.select_for_update(no_key=True).filter(account=account, user_id=user_id)
    while (found := rows.first()) is None:
        EndUser.objects.get_or_create(account=account, user_id=user_id)
    if found.removed_at is not None:
        # Nothing but this: somebody may be giving them a new profile at the same moment.
        EndUser.objects.filter(pk=found.pk).update(removed_at=None, updated_at=timezone.now())
        found.removed_at = None
    return found


def present(actor: Actor) -> QuerySet[EndUser]:
    """The end users of the actor's account."""
    return access.visible(actor, EndUser.objects.filter(removed_at=None))


@transaction.atomic
def create(actor: Actor, user_id: str, profile: Mapping[str, Any]) -> EndUser:
    """Add an end user with a profile. Raises NotAllowed, ModelValidationError, EndUserExists."""
    actor.require(Role.OPERATOR)
    _check_id(user_id)
    try:
        with transaction.atomic():
            return EndUser.objects.create(account=actor.account, user_id=user_id, **_named(profile))
    except IntegrityError:
        found = EndUser.objects.select_for_update(no_key=True).get(account=actor.account, user_id=user_id)
    if found.removed_at is None:
        raise EndUserExists(
            f"There is an end user {user_id} already; the first run for a user makes one too. Change that one."
        )
    return _change(found, profile)


@transaction.atomic
def change(actor: Actor, user_id: str, profile: Mapping[str, Any]) -> EndUser:
    """Replace those parts of the profile that are given, each as a whole. Raises NotFound, NotAllowed."""
    found = _locked(actor, user_id)
    actor.require(Role.OPERATOR)
    return _change(found, profile)


@transaction.atomic
def remove(actor: Actor, user_id: str) -> None:
    """Forget an end user; admins only. The rules made for them must be gone already: `approvals.end_users`.

    Raises NotFound, NotAllowed, and StateConflict while a run for them has not ended.
    """
    found = _locked(actor, user_id)
    actor.require(Role.ADMIN)
    if live := found.runs.live().count():
        raise StateConflict(
            f"{live} runs for {user_id} have not ended. Cancel them first, or wait for their end.",
            details={"live_runs": live},
        )
    try:
        with transaction.atomic():
            found.delete()
    except ProtectedError:
        empty = EndUser()
        for name in PROFILE:
            setattr(found, name, getattr(empty, name))
        found.removed_at = timezone.now()
        found.save()


def _locked(actor: Actor, user_id: str) -> EndUser:
    return access.get(actor, EndUser.objects.select_for_update().filter(removed_at=None), user_id=user_id)


def _change(found: EndUser, profile: Mapping[str, Any]) -> EndUser:
    for name, value in _named(profile).items():
        setattr(found, name, value)
    found.removed_at = None
    found.save()
    return found


def _named(profile: Mapping[str, Any]) -> dict[str, Any]:
    if not is_line(profile.get("name") or ""):
        raise _wrong("name", "A name is one line of text, without control characters.")
    return {name: profile[name] for name in PROFILE if name in profile}


def _check_id(user_id: str) -> None:
    if not user_id.strip() or len(user_id) > MAX_USER_ID or not is_line(user_id):
        raise _wrong(
            "user_id",
            "A user_id has between 1 and 200 characters, all of them whole and none of them control characters. "
            "Leave it out for none.",
        )


def _wrong(field: str, message: str) -> ModelValidationError:
    return ModelValidationError(message, details={"fields": [{"path": [field], "message": message}]})
