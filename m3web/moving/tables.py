"""What moves with an account, in which order, and what stays behind and why.

Every model of the installed apps is in one of the two lists; a test walks the registry, so that a new one cannot be
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.apps import apps
from django.db.models import ForeignKey, Model, Q, QuerySet

from runs.models import Account, User

PATHS: Final[dict[str, str]] = {
    "runs.account": "pk",
    "runs.membership": "account",
    "runs.apikey": "account",
    "runs.enduser": "account",
    "runs.server": "account",
    "runs.tool": "server__account",
    "runs.toolword": "tool__server__account",
    "runs.seendefinition": "account",
    "runs.seenaddress": "account",
    "runs.agent": "account",
    "runs.agent_servers": "agent__account",
    "runs.task": "account",
    "runs.run": "account",
    "runs.turn": "run__account",
    "runs.step": "run__account",
    "runs.toolcall": "step__run__account",
    "runs.round": "account",
    "runs.event": "account",
    "runs.ledger": "account",
    "runs.ledgerentry": "account",
    "runs.idempotencykey": "account",
    "runs.webhookendpoint": "account",
    "runs.webhookdelivery": "endpoint__account",
    "approvals.policy": "account",
}
"""By which way a row belongs to its account, in the order of the file. Users come first; they belong to none."""

USERS: Final = "runs.user"

STAYS: Final[dict[str, str]] = {
    "runs.user_groups": "what a person may do in /admin/ is for the host of each installation to say",
    "runs.user_user_permissions": "what a person may do in /admin/ is for the host of each installation to say",
    "runs.workerhost": "the machines of this installation",
    "runs.leftsession": "processes on the machines of this installation",
    "runs.secretproof": "tells whose secrets a database belongs to; the next one has its own",
    "admin": "what was done in /admin/; changes in an account are in its ledger as well",
    "auth": "groups and permissions of /admin/, which Django makes anew from the code",
    "axes": "who failed to sign in here, and when",
    "contenttypes": "made anew from the code by every installation",
    "procrastinate": "wake-ups; the run's row says that it is due, and the next sweep finds it",
    "sessions": "who is signed in here; signed with the secret of this installation",
}
"""What stays behind, by model or by app, and why that loses nothing."""


def labels() -> list[str]:
    """Of every table in a file, in order."""
    return [USERS, *PATHS]


def model_of(label: str) -> type[Model]:
    """The model of a label. Raises LookupError."""
    if label not in PATHS and label != USERS:
        raise LookupError(label)
    app, name = label.split(".")
    found: dict[str, type[Model]] = {
        model._meta.label_lower: model
        for model in apps.get_app_config(app).get_models(include_auto_created=True)
    }
    return found[f"{app}.{name}"]


def rows_of(label: str, account: Account) -> QuerySet[Any]:
    """The rows of a table that move with the account, by primary key."""
    rows = model_of(label)._base_manager.order_by("pk")
    if label == USERS:
        return rows.filter(_named_in(account))
    return rows.filter(**{PATHS[label]: account.pk})


def _named_in(account: Account) -> Q:
    """Members, and everybody else whom a row of the account names: keys, those who decided, those who left."""
    named = Q(pk__in=[])
    for label, path in PATHS.items():
        model = model_of(label)
        for field in _to_users(model):
            mentions = model._base_manager.filter(**{path: account.pk, f"{field.name}__isnull": False})
            named |= Q(pk__in=mentions.values(field.attname))
    return named


def _to_users(model: type[Model]) -> Iterator[ForeignKey[Any, Any]]:
    for field in model._meta.concrete_fields:
        if isinstance(field, ForeignKey) and field.related_model is User:
            yield field
