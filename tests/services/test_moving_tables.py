"""Every table is decided on: it moves with its account, or it stays for a reason."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db.models import ForeignKey, Model
from encrypted_fields.fields import EncryptedCharField

from m3web.moving import tables
from m3web.moving.secrets import decrypted, own
from runs.models import Account

EVERY = [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model._meta.label_lower)
def test_a_table_moves_or_there_is_a_reason_why_not(model: type[Model]) -> None:
    label = model._meta.label_lower
    moves = label in tables.labels()
    stays = tables.STAYS.get(label) or (
        "" if model._meta.app_label in ("runs", "approvals") else stays_with(model)
    )
    assert moves != bool(stays), f"say in m3web.moving.tables what becomes of {label}"


def stays_with(model: type[Model]) -> str:
    return tables.STAYS.get(model._meta.app_label, "")


def test_what_a_row_that_moves_refers_to_moves_too() -> None:
    moving = set(tables.labels())
    for label in moving:
        for field in tables.model_of(label)._meta.concrete_fields:
            if isinstance(field, ForeignKey):
                assert field.related_model._meta.label_lower in moving, f"{label}.{field.name}"


@pytest.mark.parametrize("label", tables.PATHS)
def test_the_way_of_a_row_to_its_account_ends_there(label: str, account: Account) -> None:
    path = tables.PATHS[label]
    if path == "pk":
        assert tables.model_of(label) is Account
        return
    model: type[Model] = tables.model_of(label)
    for step in path.split("__"):
        found = model._meta.get_field(step).related_model
        assert isinstance(found, type)
        model = found
    assert model is Account


def test_the_key_of_a_file_is_the_one_that_fields_are_encrypted_with() -> None:
    field = EncryptedCharField(max_length=10)
    assert decrypted(field, str(field.get_prep_value("hush")), own().fernet) == "hush"
