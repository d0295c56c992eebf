"""A database belongs to the two secrets with which its encrypted columns were written.

A process with others would show ciphertext, send garbage as headers, end everybody's session, and write what the rest
cannot read. So the first start leaves a proof of its secrets in the database, and every start is held against it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.models import F, Model, TextField
from django.db.models.functions import Cast
from encrypted_fields.fields import EncryptedFieldMixin

from m3web.moving.refusals import Refused
from m3web.moving.secrets import decrypted, own
from runs.models import SecretProof
from runs.models.secret_proof import THE_ONE

_OTHERS: Final = (
    "This database belongs to other secrets: set M3_SECRET_KEY and M3_ENCRYPTION_SALT as on the machine that made it, "
    "or copy its files secret_key and encryption_salt into {}. If they are lost for good: manage.py secrets --lost"
)


def refuse_others() -> None:
    """Hold our secrets against a proof that is there already, in a database of any version; one without passes.

    Called before anything is changed. Raises CommandError.
    """
    if SecretProof._meta.db_table not in connection.introspection.table_names():
        return
    kept = SecretProof.objects.filter(pk=THE_ONE).values_list("proof", flat=True).first()
    if kept is not None and not hmac.compare_digest(kept.encode(), own().proof().encode()):
        raise _refusal()


def leave_proof() -> None:
    """Write the proof into a database of this version that has none: a new one, or one of a version that knew none.

    In the latter, what is encrypted has to be readable with our secrets. Raises CommandError.
    """
    if SecretProof.objects.filter(pk=THE_ONE).exists():
        return
    if next(unreadable(), None) is not None:
        raise _refusal()
    SecretProof.objects.create(proof=own().proof())


def unreadable() -> Iterator[tuple[type[Model], Any, Any]]:
    """(model, field, primary key) of every stored value that was not encrypted with our secrets."""
    fernet = own().fernet
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if not isinstance(field, EncryptedFieldMixin):
                continue
            stored = model._base_manager.filter(**{f"{field.attname}__isnull": False})
            for key, text in stored.values_list("pk", Cast(F(field.attname), TextField())).iterator():
                try:
                    decrypted(field, text, fernet)
                except Refused:
                    yield model, field, key


@transaction.atomic
def adopt() -> list[str]:
    """Make the database ours although the secrets it was written with are lost; says what has to be entered anew.

    Headers and variables that cannot be read are emptied, and webhooks get new secrets. What can be read stays.
    """
    told = []
    for model, field, key in list(unreadable()):
        value = field.get_default() if field.has_default() else secrets.token_hex(32)
        model._base_manager.filter(pk=key).update(**{field.attname: value})
        told.append(f"{model._meta.verbose_name} {key}: {field.verbose_name}")
    SecretProof.objects.update_or_create(pk=THE_ONE, defaults={"proof": own().proof()})
    return told


def _refusal() -> CommandError:
    return CommandError(_OTHERS.format(settings.M3.data_dir))
