"""The printed code, piece by piece, each with the names that it takes from the text around it."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import seed_blocks
from m8tes import M8tes


def play(client: M8tes, block: str, run_id: int | None = None) -> dict[str, Any]:
    """Run one piece as it is printed; `run_id` is the run that it calls `run`."""
    names: dict[str, Any] = {"client": client}
    if run_id is not None:
        names["run"] = client.runs.get(run_id)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(getattr(seed_blocks, block), block, "exec"), names)
    run = names.get("run")
    return {
        "printed": printed.getvalue().splitlines(),
        "run": None if run is None else {"id": run.id, "status": run.status, "output": run.output},
    }


def onboard(client: M8tes, user_id: str) -> list[str]:
    """Define the printed function and call it; gives the tools that are allowed for the user."""
    names: dict[str, Any] = {"client": client}
    exec(compile(seed_blocks.ONBOARD, "ONBOARD", "exec"), names)
    names["onboard_user"](user_id)
    return [policy.tool_name for policy in client.permissions.list(user_id=user_id)]


def awaiting_input(client: M8tes) -> Any:
    """The printed body of a webhook."""
    return json.loads(seed_blocks.AWAITING_INPUT)
