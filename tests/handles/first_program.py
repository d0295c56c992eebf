"""A program that starts an execution, tells its id once something waits for an answer, and waits to be killed.

Arguments: the store's file, the parcel service's script, the file of its effects.
"""

from __future__ import annotations

import sys
import time

from runs.handles import MCPTestKit, SQLiteExecutionStore, StdioServer

path, script, effects = sys.argv[1:]
server = StdioServer("parcels", sys.executable, [script, "modern"], {"M3_EFFECTS": effects})
steps = [{"call": "parcels:label"}, {"call": "parcels:book", "as": "b"}, {"finish": "{{ b.status }}"}]

with MCPTestKit(store=SQLiteExecutionStore(path), env={}) as kit:
    agent = kit.agents([{"definition": {"steps": steps}}])[0]
    handle = agent.submit("Book", server=server, human_input="managed")
    while (pending := handle.pending_elicitation()) is None:
        time.sleep(0.02)
    print(handle.execution_id, pending.round_id, flush=True)
    handle.result()
