"""Why a file is not written, or not taken."""

from __future__ import annotations


class Refused(Exception):
    """The message says what is wrong and what to do; nothing was changed."""
