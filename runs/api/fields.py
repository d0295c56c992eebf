"""Fields that take a JSON value as it is. The framework's own read 5 as "5" and "yes" as true."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from rest_framework import serializers

from runs.canonical import canonical_json

MAX_METADATA = 20_000
"""Characters of metadata as JSON."""

MAX_TOOLS = 500
"""Targets that one selection may name."""


class Text(serializers.CharField):
    """A string, untrimmed; how long it may be, or whether empty, is mostly a service's rule."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Must be a string.")
        return data


class Word(Text):
    """One word of a set."""

    def __init__(self, words: type[StrEnum], **options: Any) -> None:
        super().__init__(allow_blank=False, **options)
        self.words = [word.value for word in words]

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text not in self.words:
            raise serializers.ValidationError(f"Must be one of {', '.join(self.words)}.")
        return text


class Flag(serializers.BooleanField):
    """true or false."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Must be true or false.")
        return data


class Whole(serializers.IntegerField):
    """An integer; 1.0 is one, "1" and true are not."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data != int(data):
            raise serializers.ValidationError("Must be a whole number.")
        return int(data)


class Unavailable(serializers.Field[Any, Any, Any, Any]):
    """Something that clients can ask for and this product does not have.

    Ignoring it would let them believe in a limit or a schedule that nobody keeps, so only the value that leaves it off
    is taken.
    """

    def __init__(self, why: str, *, off: Any = None) -> None:
        super().__init__(required=False, allow_null=True)
        self.why = why
        self.off = off

    def to_internal_value(self, data: Any) -> None:
        if type(data) is not type(self.off) or data != self.off:  # 0 is not false
            raise serializers.ValidationError(self.why)


class Metadata(serializers.DictField):
    """An object of the embedding application, stored as it is."""

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        if len(canonical_json(value)) > MAX_METADATA:
            raise serializers.ValidationError(f"Must have at most {MAX_METADATA:,} characters as JSON.")
        return value


class Selection(serializers.ListField):
    """Targets, "server" or "server:tool", that limit what a run may call."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Text(allow_blank=False, max_length=300), max_length=MAX_TOOLS, **options)


class QueryFlag(serializers.BooleanField):
    """A truth value in an address, where it is a word (m8tes-http 1.13)."""

    def __init__(self) -> None:
        super().__init__(default=False)

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            raise serializers.ValidationError("Must be true or false.")
        return bool(data == "true")
