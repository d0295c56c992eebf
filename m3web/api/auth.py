"""Who calls the API: a program by its key, or a person by the session cookie with the CSRF token on every change."""

from __future__ import annotations

from django.conf import settings
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from runs import keys
from runs.errors import NotAllowed
from runs.models import ApiKey, User

SCHEME = "bearer"


class CsrfFailed(NotAllowed):
    """A change came with the session cookie but without proof that our own page sent it."""

    code = "csrf_failed"


class KeyAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer m3_...`. It stands first, so a refusal names the key as what is missing."""

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        """Raises AuthenticationFailed for a key that is not valid (any more); None if no key was sent."""
        scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME:
            return None
        key = keys.find(presented.strip())
        if key is None:
            raise exceptions.AuthenticationFailed(
                "This API key is not valid. It may have been revoked or have expired; ask an admin for another."
            )
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        """Without a challenge the framework would answer 403, which is a refusal of what one may (m8tes-http 8.2)."""
        return 'Bearer realm="api"'


class SessionAuthentication(authentication.SessionAuthentication):
    """The session of the pages."""

    def enforce_csrf(self, request: Request) -> None:
        """Raise CsrfFailed unless the request carries the token that belongs to its cookie."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailed(
                f"The CSRF token is missing or wrong. Send the value of the cookie "
                f"{settings.CSRF_COOKIE_NAME} in the header X-CSRFToken; nothing was changed."
            ) from error
