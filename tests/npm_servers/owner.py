"""A process that owns a child: makes a call that lasts and prints the child's pid as soon as it is sent.

`python -m tests.npm_servers.owner COMMAND ARGS...`, where the command starts server-everything over stdio.
"""

from __future__ import annotations

import asyncio
import sys

from runs.mcp_client import Operation, SessionInfo, StdioBinding, perform
from tests.mcp.bindings import LEGACY


async def main(command: str, *args: str) -> None:
    call = Operation(
        kind="tool", name="trigger-long-running-operation", arguments={"duration": 600, "steps": 1}
    )
    await perform(
        StdioBinding(command=command, args=args),
        call,
        saved=LEGACY,
        elicit=None,
        journal=ignore,
        timeout=600,
        on_session=tell,
    )


async def ignore(*_: object) -> None:
    """Nobody reads this journal."""


async def tell(session: SessionInfo) -> None:
    print(session.pid, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
