"""Whether the live session behind a pause can still be reached, and whether its call could be made again instead.

A pause that is `held` waits on a session: of a worker, of a keeper beside it, of a server that keeps its events.
"""

from __future__ import annotations

import socket

from runs import clock, local_tools
from runs.keeper.place import this_host
from runs.local_tools import LOCAL
from runs.models import Round, Run, Tool, ToolCall
from runs.risk import Risk, effectively_idempotent

SESSION = "session"
"""Key of a session's record in `ToolCall.wire`."""

ANSWER_SECONDS = 1.0
"""How long a keeper on this machine may take to take a connection."""

GONE = (
    "Whoever asked this is gone: its process ended while it waited, and nothing of it can be reached. Nothing you sent "
    "was used. The run says so in a moment; look at what it had done, then start it again."
)


def answer_can_arrive(round_: Round) -> bool:
    """Whether an answer given now can reach whoever asked.

    True while a worker drives the run, for pauses that wait on no session, and where the call may be made again. Of
    what only the other machine can know, the best is assumed.
    """
    call: ToolCall | None = getattr(round_.step, "call", None)
    if not round_.held or call is None or _is_driven(round_.run_id) or may_repeat(call):
        return True
    record = call.wire.get(SESSION)
    if record is None or round_.native_resume_token is None:
        return False
    kept_here = record.get("keeper") and record.get("host") == this_host()
    return _is_kept(record["keeper"]) if kept_here else True


def may_repeat(call: ToolCall) -> bool:
    """Effectively read-only or idempotent, or replay allowed by an admin or, for a local tool, by its registration;
    prompts and resources are reads (A23)."""
    if call.operation != "tool":
        return True
    if call.server_name == LOCAL:
        local = local_tools.find(call.name)
        return local is not None and local.replay
    tool = Tool.objects.select_related("server").filter(server=call.server_id, name=call.name).first()
    if tool is None:
        return False
    return tool.replay_allowed or effectively_idempotent(
        admin=Risk(tool.risk) if tool.risk else None,
        admin_idempotent=tool.idempotent,
        annotations=tool.annotations,
        trusted=tool.server.trusted,
    )


def _is_kept(address: str) -> bool:
    """Whether a keeper listens; one that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as knock:
        knock.settimeout(ANSWER_SECONDS)
        try:
            knock.connect(address)
        except OSError:
            return False
    return True


def _is_driven(run_id: int) -> bool:
    return Run.objects.filter(pk=run_id, lease_until__gt=clock.moment()).exists()
