"""Sessions of people who signed in, as Django keeps them. A cookie that no database could look up is nobody's."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore as DatabaseSession

from runs.models.exact import is_plain


class SessionStore(DatabaseSession):
    """The name that Django looks for in the module of `SESSION_ENGINE`."""

    def _validate_session_key(self, key: str) -> bool:
        """The cookie comes from outside: quoted, it can spell a NUL, which PostgreSQL refuses to compare with."""
        return bool(super()._validate_session_key(key)) and is_plain(key)  # type: ignore[misc]  # Django's own, untyped
