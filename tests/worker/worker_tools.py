"""Local tools of the worker process of a test; they count what they do in the file that M3_EFFECTS names."""

from __future__ import annotations

import asyncio
import os

from m3web.demo_servers import record_effect
from runs.local_tools import LocalContext, local_tool

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def sign(context: LocalContext, tag: str) -> str:
    """Asks for a name and signs with it."""
    record_effect("sign began", tag=tag)
    answer = await context.elicit("Your name?", NAME)
    record_effect("sign", tag=tag, answer=answer.content)
    return "signed"


async def haul(context: LocalContext, until: str, tag: str) -> str:
    """At work until there is a file named `until`."""
    record_effect("haul began", tag=tag)
    while not os.path.exists(until):
        await asyncio.sleep(0.05)
    record_effect("haul", tag=tag)
    return "hauled"


def register() -> None:
    """Offer each tool twice: as one that may run again after a crash, and as one that may not."""
    for suffix, replay in (("", False), ("_again", True)):
        local_tool(f"sign{suffix}", replay=replay)(sign)
        local_tool(f"haul{suffix}", replay=replay)(haul)
