"""A copy of a value without its secrets, for diagnostics, events and logs (C44, C45).

Plain module. What is stored and delivered stays as it was; only the copy is masked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote_plus

from runs.steps import Json

MASK: Final = "[redacted]"
TOO_DEEP: Final = "[redacted: nested too deep]"
_MAX_DEPTH: Final = 100

# Secret wherever they stand in a key, once case and separators are gone: "X-Api-Key", "myPasswordHash".
_SECRET_PARTS: Final = re.compile(
    "token|secret|passw|passphrase|passcode|authorization|apikey|accesskey|privatekey|signingkey|"
    "encryptionkey|credential|cookie|bearer|sessionid|signature|cardnumber|accountnumber"
)
# Secret only as a word of their own: "auth_header" is, "author" is not.
_SECRET_WORDS: Final = frozenset(
    {"auth", "pwd", "pin", "otp", "totp", "mfa", "cvv", "cvc", "jwt", "ssn", "iban"}
)
# Secret as the name of a query parameter, where sign-in flows put them.
_SECRET_PARAMETERS: Final = _SECRET_WORDS | {"code", "key", "sig", "state", "nonce", "assertion", "sid"}

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
_NAMED_VALUE: Final = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?P<by>=|: ?)(?=.)", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?P<before>[?&;#])(?P<name>[^=&;#?]*)=(?P<value>[^&;#]*)")


def redact(value: Json) -> Json:
    """A copy in which the values of secret-named keys and the secrets inside URLs are masked (C45).

    A key is secret if it is or contains a secret name (token, secret, password, authorization, api-key, ...).
    Values nested deeper than a hundred levels are masked whole. The input is not changed.
    """
    return _redact(value, depth=0)


def _redact(value: Json, *, depth: int) -> Json:
    if depth > _MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, str):
        return redact_urls(value)
    if isinstance(value, Mapping):
        return {
            key: MASK if is_secret_name(str(key)) else _redact(inner, depth=depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact(inner, depth=depth + 1) for inner in value]
    return value


def redact_command(parts: Sequence[str]) -> tuple[str, ...]:
    """A command line in which what follows a secret-named option, and the secrets inside URLs, are masked.

    `--token=x`, `--token x`, `TOKEN=x` and `Authorization: x` are known; a secret without a name beside it is not.
    """
    shown: list[str] = []
    masks_next = False
    for part in parts:
        named = _NAMED_VALUE.match(part)
        if masks_next and not part.startswith("-"):
            shown.append(MASK)
        elif named and is_secret_name(named["name"]):
            shown.append(f"{named['name']}{named['by']}{MASK}")
        else:
            shown.append(redact_urls(part))
        masks_next = part.startswith("-") and named is None and is_secret_name(part)
    return tuple(shown)


def is_secret_name(name: str) -> bool:
    """Whether a key of this name holds a secret."""
    squashed = re.sub(r"[^a-z0-9]", "", name.casefold())
    return bool(_SECRET_PARTS.search(squashed)) or not _SECRET_WORDS.isdisjoint(_words(name))


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def redact_urls(text: str) -> str:
    """The text with the userinfo and the secret parameters of every URL in it masked."""
    return _URL.sub(lambda match: _redact_url(match.group()), text)


def _redact_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    end = re.search(r"[/?#\\]", rest)
    authority, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    userinfo, at, host = authority.rpartition("@")
    return f"{scheme}://{MASK if userinfo else ''}{at}{host}{_PARAMETER.sub(_mask_parameter, tail)}"


def _mask_parameter(match: re.Match[str]) -> str:
    name = unquote_plus(match["name"])
    if not is_secret_name(name) and _SECRET_PARAMETERS.isdisjoint(_words(name)):
        return match.group()
    return f"{match['before']}{match['name']}={MASK}"
