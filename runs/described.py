"""Enums whose members carry a sentence, so that a state explains itself wherever it is shown.

Plain module.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class DescribedEnum(StrEnum):
    """A StrEnum declared as `NAME = "value", "Sentence for a person."`; the value is what is stored.

    `describe` is the sentence; look-up by value (`TurnStatus("idle")`), comparison and JSON use the value
    alone.
    """

    _value_: str
    describe: str

    def __new__(cls, value: str, describe: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.describe = describe
        return member
