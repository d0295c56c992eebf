"""The error that a reader of typed text raises; its message tells the person what to type instead."""

from __future__ import annotations


class Refused(ValueError):
    """The text is not a value of the field's kind. `message` is a sentence for the person who typed it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
