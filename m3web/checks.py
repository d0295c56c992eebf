"""System checks that explain a bad setting before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core import checks


@checks.register()
def environment_is_usable(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Every environment variable that could not be parsed is an error of its own."""
    return [
        checks.Error(
            problem.message,
            hint=f"Correct or unset {problem.variable}; the README lists all settings.",
            id="m3web.E001",
        )
        for problem in settings.M3.problems
    ]


@checks.register()
def channel_layer_is_there(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """`get_channel_layer()` returns None silently on a configuration mistake; then no hint would ever arrive."""
    if get_channel_layer() is None:
        return [checks.Error("No channel layer is configured, so pages would never update.", id="m3web.E002")]
    return []


@checks.register(deploy=True)
def demo_is_for_loopback(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Demo mode creates logins and permits stdio commands from the page; it must not face a network."""
    if settings.M3.demo:
        return [
            checks.Warning("Demo mode is on.", hint="Unset M3_DEMO for a real installation.", id="m3web.W001")
        ]
    return []
