"""What the tests of pages share beside `tests.conftest`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from runs.models import Run, Server, Step, ToolCall
from runs.steps import StepKind


@pytest.fixture
def add_step(desk: Server) -> Callable[..., Step]:
    """A step as the worker stores it, with its call if `call` is given."""

    def add(run: Run, kind: StepKind, params: dict[str, Any], result: Any = None, **call: Any) -> Step:
        turn = run.turns.get()
        seq = run.steps.count() + 1
        step = Step.objects.create(
            run=run,
            turn=turn,
            seq=seq,
            kind=kind.value,
            path=f"steps[{seq}]",
            params=params,
            result=result,
            finished_at=timezone.now() if result is not None else None,
        )
        if call:
            fields = {
                "server": desk,
                "server_name": "desk",
                "operation": "tool",
                "name": "send_email",
                **call,
            }
            ToolCall.objects.create(step=step, asked_digest="sha256:x", **fields)
        return step

    return add
