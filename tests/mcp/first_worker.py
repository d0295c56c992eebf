"""A worker that is to be killed: makes one call, prints what it would have stored, and never answers a prompt.

`python -m tests.mcp.first_worker`, with `{"binding", "keep", "name", "arguments", "answers"}` as JSON on stdin. It
prints one line per fact: the session, each prompt, and the prompts that it answers with the first of `answers`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from runs.mcp_client import (
    Answer,
    Binding,
    HttpBinding,
    Keep,
    Operation,
    Request,
    SessionInfo,
    StdioBinding,
    perform,
)
from tests.mcp.bindings import LEGACY


def say(**fact: Any) -> None:
    print(json.dumps(fact), flush=True)


async def main() -> None:
    told = json.load(sys.stdin)
    keep = Keep(**{**told["keep"], "folder": Path(told["keep"]["folder"])})
    binding: Binding = (
        HttpBinding(**told["binding"]) if "url" in told["binding"] else StdioBinding(**told["binding"])
    )
    answers = list(told["answers"])

    async def session(info: SessionInfo) -> None:
        say(session=dataclasses.asdict(info))

    async def elicit(request: Request) -> Answer:
        assert request.origin is not None
        say(
            prompt=request.origin.jsonrpc_id,
            message=request.message,
            schema=getattr(request, "schema", None),
            url=getattr(request, "url", None),
            elicitation_id=getattr(request, "elicitation_id", None),
            token=request.origin.resumption_token,
        )
        if not answers:
            await asyncio.Event().wait()
        return Answer(action="accept", content=answers.pop(0))

    async def journal(event: str, *_: Any) -> None:
        say(journal=event)

    await perform(
        binding,
        Operation(kind="tool", name=told["name"], arguments=told["arguments"]),
        saved=LEGACY,
        elicit=elicit,
        journal=journal,
        timeout=60,
        on_session=session,
        keep=keep,
    )


if __name__ == "__main__":
    asyncio.run(main())
