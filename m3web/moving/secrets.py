"""The two secrets of an installation: with them the secrets in a file are read, and its seal is checked.

A file holds headers and webhook secrets as the database did, encrypted; whoever has the file alone reads none of them.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.fernet import Fernet
from django.conf import settings

from m3web.moving.refusals import Refused

_ROUNDS: Final = 100_000
"""Of the library that encrypts the fields; a test compares."""


@dataclass(frozen=True)
class Secrets:
    """Of the installation that a file comes from."""

    secret_key: str
    salt: str

    @functools.cached_property
    def fernet(self) -> Fernet:
        """What the installation's fields are encrypted with."""
        return Fernet(base64.urlsafe_b64encode(self._derived))

    @functools.cached_property
    def _derived(self) -> bytes:
        return hashlib.pbkdf2_hmac("sha256", self.secret_key.encode(), self.salt.encode(), _ROUNDS, 32)

    def seal(self, digest: str) -> str:
        """A proof that a file with this digest was written by somebody who has the secrets."""
        key = hmac.digest(self._derived, b"m3web account file", "sha256")
        return hmac.new(key, digest.encode(), "sha256").hexdigest()

    def proof(self) -> str:
        """The same for the same two secrets, and for no others; kept in the database that belongs to them."""
        return hmac.digest(self._derived, b"m3web secrets of a database", "sha256").hex()


def own() -> Secrets:
    """Those of this installation."""
    return Secrets(settings.SECRET_KEY, settings.SALT_KEY[0])


def in_folder(folder: Path) -> Secrets:
    """Those of another installation, in two files as its data folder has them. Raises Refused."""
    try:
        return Secrets(*((folder / name).read_text().strip() for name in ("secret_key", "encryption_salt")))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"The secrets cannot be read from {folder}: it needs secret_key and encryption_salt."
        ) from error


def decrypted(field: Any, stored: str, fernet: Fernet) -> Any:
    """The value of an encrypted field from what the database holds. Raises Refused if it was encrypted otherwise."""
    reader = field.clone()
    reader.f = fernet
    value = reader.to_python(stored)
    # The library gives back what it was given if it cannot read it.
    if value == stored or (field.get_internal_type() == "JSONField" and isinstance(value, str)):
        raise Refused("it was not encrypted with these secrets")
    return value
