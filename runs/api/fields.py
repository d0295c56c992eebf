"""Fields that take a JSON value as it is. The framework's own read 5 as "5" and "yes" as true."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from rest_framework import serializers


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
