"""Who may see or change what. Every page, route and socket asks here, and only here.

An object of another account looks exactly like one that does not exist (house style 9).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import DataError, models
from django.db.models import F

from runs.closing import refuse_closed
from runs.errors import NotAllowed, NotFound
from runs.models import Account, Agent, Membership, Role, Task, User
from runs.row_lookup import row

M = TypeVar("M", bound=models.Model)

_RANK = {Role.VIEWER: 0, Role.OPERATOR: 1, Role.ADMIN: 2}
_ACCOUNT_PATH = {
    "tool": "server__account",
    "turn": "run__account",
    "step": "run__account",
    "toolcall": "step__run__account",
    "webhookdelivery": "endpoint__account",
}


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A signed-in person acting inside one account."""

    user: User
    account: Account
    role: Role

    def may(self, role: Role) -> bool:
        return _RANK[self.role] >= _RANK[role]

    def require(self, role: Role) -> None:
        """Raise NotAllowed unless the actor's role is at least `role`."""
        if not self.may(role):
            raise NotAllowed(
                f"This needs the role {role}; you are {self.role}. Ask an admin of {self.account.name}."
            )

    @property
    def can_decide(self) -> bool:
        return self.may(Role.OPERATOR)

    @property
    def can_administer(self) -> bool:
        return self.may(Role.ADMIN)


def actor_for(user: User | AnonymousUser, account_id: int | None = None) -> Actor:
    """The actor that `user` is in the account with this id, or in the first open one they belong to.

    Raises NotAllowed for someone who belongs to no account, or not to this one, and for a closed account.
    """
    open_first = F("account__closed_at").asc(nulls_first=True)
    memberships = Membership.objects.filter(user=user.pk).select_related("account").order_by(open_first, "pk")
    if account_id is not None:
        memberships = memberships.filter(account=account_id)
    membership = memberships.first() if isinstance(user, User) and user.is_active else None
    if membership is None or not isinstance(user, User):
        raise NotAllowed("You belong to no account yet. Ask an admin to add you.")
    refuse_closed(membership.account)
    return Actor(user=user, account=membership.account, role=Role(membership.role))


def visible(actor: Actor, queryset: models.QuerySet[M]) -> models.QuerySet[M]:
    """The rows of `queryset` that belong to the actor's account."""
    path = _ACCOUNT_PATH.get(queryset.model._meta.model_name or "", "account")
    return queryset.filter(**{path: actor.account})


def get(actor: Actor, queryset: models.QuerySet[M], **lookup: Any) -> M:
    """One visible row; raises NotFound when there is none or it belongs to another account."""
    try:
        return visible(actor, queryset).get(**lookup)
    except (ObjectDoesNotExist, ValueError, OverflowError, ValidationError, DataError) as error:
        raise _not_there(actor, queryset.model) from error


def one(actor: Actor, model: type[M], key: int | str, *columns: str) -> M:
    """`get` for a row that is asked for again and again; of a model that belongs to an account itself. `columns` as
    for `row_lookup.rows`."""
    with contextlib.suppress(OverflowError, ValueError, DataError):  # a key that no row can have
        if found := row(model, *columns, id=key, account_id=actor.account.pk):
            return found
    raise _not_there(actor, model)


def _not_there(actor: Actor, model: type[models.Model]) -> NotFound:
    return NotFound(f"There is no such {model._meta.verbose_name} in {actor.account.name}.")


def one_user(owner: Agent | Task, user_id: str | None) -> str | None:
    """For which end user something of `owner` is: that of `owner` if it has one, else whom the caller names.

    Raises NotFound for another one, to whom `owner` looks like one that does not exist (m8tes-http 3).
    """
    if owner.end_user is None:
        return user_id
    if user_id not in (None, owner.end_user.user_id):
        raise NotFound(f"There is no such {owner._meta.verbose_name} for {user_id}.")
    return owner.end_user.user_id
