"""API keys: making one, finding out whose call it is, taking one back.

A key is `m3_<public id>_<secret>`. The secret has 256 random bits, so one round of SHA-256 protects it: there is
nothing to guess, and a check that costs a password's time would cost it on every call.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from runs import access, audit
from runs.access import Actor
from runs.closing import refuse_closed
from runs.durations import utc_text
from runs.errors import ModelValidationError, NotAllowed, StateConflict
from runs.models import Account, ApiKey, Role, User
from runs.models.exact import is_plain
from runs.row_lookup import row

PREFIX = "m3_"
MAX_NAME = 60
MAX_DAYS = 3650
_USED_EVERY = dt.timedelta(minutes=1)
"""How exact "last used" is; writing it on every call would make each read a write."""


@dataclass(frozen=True, kw_only=True)
class NewKey:
    """A key that was just made; `secret` is the whole key and can never be had again."""

    key: ApiKey
    secret: str


def create(actor: Actor, name: str, *, role: Role = Role.ADMIN, days: int | None = None) -> NewKey:
    """Make a key of the actor's account. Raises NotAllowed, ModelValidationError, StateConflict (name is taken)."""
    actor.require(Role.ADMIN)
    return issue(actor.account, name, role=role, days=days, created_by=actor.user)


@transaction.atomic
def issue(
    account: Account,
    name: str,
    *,
    role: Role,
    days: int | None = None,
    created_by: User | None = None,
) -> NewKey:
    """`create` for the installation itself, which asks nobody."""
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise ModelValidationError(
            f"A key has a name of 1 to {MAX_NAME} printable characters, so that it can be told apart.",
            details={"fields": [{"path": ["name"], "message": f"Use 1 to {MAX_NAME} printable characters."}]},
        )
    if days is not None and not 1 <= days <= MAX_DAYS:
        message = f"A key expires after 1 to {MAX_DAYS} days. Leave it out for a key that does not."
        raise ModelValidationError(message, details={"fields": [{"path": ["days"], "message": message}]})
    public_id, hidden = secrets.token_hex(6), secrets.token_urlsafe(32)
    user = User.objects.create_user(username=f"{name} (API key {public_id})")
    try:
        with transaction.atomic():
            key = ApiKey.objects.create(
                account=account,
                user=user,
                name=name,
                role=role.value,
                public_id=public_id,
                secret_digest=_digest(hidden),
                created_by=created_by,
                expires_at=timezone.now() + dt.timedelta(days=days) if days else None,
            )
    except IntegrityError as error:
        raise StateConflict(
            f"There is a key named {name} already. Revoke it first, or take another name."
        ) from error
    expires = utc_text(key.expires_at) if key.expires_at else None
    facts = {"name": name, "role": key.role, "public_id": public_id, "expires_at": expires}
    audit.note(account, created_by, "key.made", f"key {key.pk}", facts)
    return NewKey(key=key, secret=f"{PREFIX}{public_id}_{hidden}")


def find(presented: str) -> ApiKey | None:
    """The valid key that was presented, marked as used; None for anything else."""
    public_id, _, hidden = presented.removeprefix(PREFIX).partition("_")
    if not presented.startswith(PREFIX) or not hidden or not is_plain(public_id):
        return None
    now = timezone.now()
    key = row(ApiKey, public_id=public_id)
    if key is None or not hmac.compare_digest(key.secret_digest, _digest(hidden)) or not key.in_force(now):
        return None
    account, user = row(Account, id=key.account_id), row(User, id=key.user_id)
    if account is None or user is None:  # removed at this moment
        return None
    key.account, key.user = account, user
    if key.last_used_at is None or now - key.last_used_at >= _USED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key


def actor_of(key: ApiKey) -> Actor:
    """Whom a key acts as. Raises NotAllowed for a closed account."""
    refuse_closed(key.account)
    return Actor(user=key.user, account=key.account, role=Role(key.role))


def still_acts(user_id: int, account_id: int) -> bool:
    """Whether who has begun something in this account, by a key or as a person, would be let in now."""
    key = ApiKey.objects.filter(user=user_id, account=account_id).select_related("account", "user").first()
    try:
        if key is not None:
            actor_of(key)
            return key.in_force(timezone.now())
        access.actor_for(User.objects.filter(pk=user_id).first() or AnonymousUser(), account_id)
    except NotAllowed:
        return False
    return True


@transaction.atomic
def revoke(actor: Actor, key_id: int) -> ApiKey:
    """Take a key back; the next call with it is refused. Its name stays in what it did. Raises NotAllowed, NotFound."""
    actor.require(Role.ADMIN)
    key = access.get(actor, ApiKey.objects.select_for_update(), pk=key_id)
    invalidate(key, by=actor.user)
    return key


@transaction.atomic
def invalidate(key: ApiKey, *, by: User | None = None) -> None:
    """`revoke` for the installation itself; a key that is invalid already stays as it is."""
    if key.revoked_at is not None:
        return
    key.revoked_at = timezone.now()
    key.save(update_fields=["revoked_at"])
    User.objects.filter(pk=key.user_id).update(is_active=False)
    audit.note(
        key.account_id, by, "key.revoked", f"key {key.pk}", {"name": key.name, "public_id": key.public_id}
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
