"""How a pause looks to clients that know permission requests only, for those that may not import who words them.

`runs` knows rounds; what they are called in the words of m8tes (one request per key, its tool, its questions) is said
by `approvals`. The stream and the webhooks need it, so the setting names it, as `M3_GATE` names the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from runs.models import Round

QUESTION_TOOL: Final = "AskUserQuestion"
"""The tool name of every request whose answer is more than allow or deny (m8tes-http 2)."""


class PermissionRequest(Protocol):
    """What m8tes clients see of one key of a pause (m8tes-http 2)."""

    @property
    def request_id(self) -> str: ...
    @property
    def tool_use_id(self) -> str | None: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def tool_input(self) -> Mapping[str, Any] | None: ...
    @property
    def status(self) -> str: ...


RequestsOf = Callable[[Round], Sequence[PermissionRequest]]


def requests_of(round_: Round) -> Sequence[PermissionRequest]:
    """The requests of a pause as they are now, by the function that the setting `M3_PERMISSION_REQUESTS` names."""
    return cast(RequestsOf, import_string(settings.M3_PERMISSION_REQUESTS))(round_)


def tool_use_id(run_id: int, step: int) -> str:
    """The id of a tool call for clients: the same in the stream and in the requests that ask about it.

    `step` is the number of the step within its run.
    """
    return f"call_{run_id}_{step}"
