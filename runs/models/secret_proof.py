"""By which secrets a database's encrypted columns and sessions are read: a proof of them, never the secrets."""

from __future__ import annotations

from django.db import models

THE_ONE: int = 1
"""Number of the only row."""


class SecretProof(models.Model):
    """One row, written by the first start and held against the secrets of every later one (`m3web.belonging`)."""

    id = models.SmallIntegerField(primary_key=True, default=THE_ONE)
    proof = models.CharField(max_length=64)
    """A keyed digest (HMAC) made with both secrets; nothing can be read with it."""

    def __str__(self) -> str:
        return "proof of the secrets"
