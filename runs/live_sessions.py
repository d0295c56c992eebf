"""Whether the live session behind a pause can still be reached, and whether its call could be made again instead.

A pause that is `held` waits on a session: of a worker, of a keeper beside it, of a server that keeps its events.
Whoever asks may be on another host than the keeper, and goes by the signs of life of that host's workers.
"""

from __future__ import annotations

import socket

from runs import clock, hosts, local_tools
from runs.keeper.place import name_of
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


HOST_GONE = (
    "The server that asked this runs on another machine ({host}), and nothing has been heard of that for {seconds} "
    "seconds. Nothing you sent was used. If the machine comes back first, you can answer again; else the run says in a "
    "moment that it has lost its server."
)


def why_unreachable(round_: Round) -> str | None:
    """Why an answer given now cannot reach whoever asked, in a sentence; None if it can.

    It can while a worker drives the run, for pauses that wait on no session, where the call may be made again, and as
    long as a host that keeps the session lives: a worker there will find the answer. Whether the keeper itself is
    still there is known on its own host only.
    """
    call: ToolCall | None = getattr(round_.step, "call", None) if round_.held else None
    if call is None or _is_driven(round_.run_id) or may_repeat(call):
        return None
    record = call.wire.get(SESSION)
    if record is None or round_.native_resume_token is None:
        return GONE
    if not record["keeper"]:
        return None
    if record["host"] == hosts.here():
        return None if _is_kept(record["keeper"]) else GONE
    if not hosts.is_gone(record["host"]):
        return None
    seconds = round(hosts.gone_after().total_seconds())
    return HOST_GONE.format(host=name_of(record["host"]), seconds=seconds)


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
