"""Small builders that every model here uses, so that a set of words is enforced by the database too."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.core.exceptions import ValidationError
from django.db import models

from runs.durations import parse_timeout
from runs.errors import ModelValidationError


def word_field(words: type[StrEnum], *, default: StrEnum | None = None) -> models.CharField[str, str]:
    """A CharField that holds one member of `words`; pair it with `one_of` for the constraint."""
    if default is None:
        return models.CharField(max_length=32, choices=_options(words))
    return models.CharField(max_length=32, choices=_options(words), default=default.value)


def optional_word_field(words: type[StrEnum]) -> models.CharField[str | None, str | None]:
    """The same, or null."""
    return models.CharField(max_length=32, choices=_options(words), null=True, blank=True)


def _options(words: type[StrEnum]) -> list[tuple[str, str]]:
    return [(word.value, word.value.replace("_", " ")) for word in words]


def one_of(model: str, field: str, words: Iterable[StrEnum], *, null: bool = False) -> models.CheckConstraint:
    """The database refuses any other word in `field`."""
    condition = models.Q(**{f"{field}__in": [word.value for word in words]})
    if null:
        condition |= models.Q(**{f"{field}__isnull": True})
    return models.CheckConstraint(condition=condition, name=f"{model}_{field}_known")


def time_limit(value: str) -> None:
    """Field validator: a time limit in the format of A17, wherever it is typed."""
    try:
        parse_timeout(value)
    except ModelValidationError as error:
        raise ValidationError(error.message) from error
