"""WebSocket routes."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.consumers import HintConsumer

routes: list[Any] = [path("ws/hints/", HintConsumer.as_asgi())]
