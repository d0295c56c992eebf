"""Who calls the API: a person by the session cookie, with the CSRF token on every change."""

from __future__ import annotations

from django.conf import settings
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from runs.errors import NotAllowed


class CsrfFailed(NotAllowed):
    """A change came with the session cookie but without proof that our own page sent it."""

    code = "csrf_failed"


class SessionAuthentication(authentication.SessionAuthentication):
    """The session of the pages.

    It names a challenge, because without one the framework answers 403 where nobody is signed in, and a client
    could not tell an expired session from a role that may not (m8tes-http 8.2).
    """

    def authenticate_header(self, request: Request) -> str:
        return 'Session realm="api"'

    def enforce_csrf(self, request: Request) -> None:
        """Raise CsrfFailed unless the request carries the token that belongs to its cookie."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailed(
                f"The CSRF token is missing or wrong. Send the value of the cookie "
                f"{settings.CSRF_COOKIE_NAME} in the header X-CSRFToken; nothing was changed."
            ) from error
