"""A parcel service of few lines, standard library only, so that a test may start it as often as it likes.

`python parcels.py GENERATION`: `modern` returns its questions, `legacy` asks them on the open session. Tools: `book`
asks for an address, `insure` for a cover and for consent to a page, `label` asks nothing, `haul` is at work until there
is a file named `until`, `hang` never answers. What really happened is counted in the file that M3_EFFECTS names, under
the `tag` of the call if it has one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string", "minLength": 1}, "city": {"type": "string"}},
    "required": ["street", "city"],
}
COVER = {"type": "object", "properties": {"level": {"enum": ["basic", "full"]}}, "required": ["level"]}
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("book", "insure", "label", "haul", "hang")
]


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def effect(what: str, **facts: Any) -> None:
    with open(os.environ["M3_EFFECTS"], "a") as file:
        file.write(json.dumps({"what": what, **facts}) + "\n")


def form(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


QUESTIONS = {
    "book": {"shipping_address": form("Where should the parcel go?", ADDRESS)},
    "insure": {
        "cover": form("Which cover?", COVER),
        "terms": {
            "method": "elicitation/create",
            "params": {
                "mode": "url",
                "message": "Agree to the terms",
                "url": "https://parcels.example/terms",
            },
        },
    },
}


def asked(name: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The answers to the tool's questions; None if it has to be called again with them."""
    if "legacy" in sys.argv:
        send(id="ask", method="elicitation/create", params=QUESTIONS[name]["shipping_address"]["params"])
        while (reply := receive()).get("id") != "ask":
            pass
        return {"shipping_address": reply.get("result", {"action": "refused"})}
    return params.get("inputResponses")


def call(name: str, params: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    arguments = params.get("arguments") or {}
    tag = {"tag": arguments["tag"]} if "tag" in arguments else {}
    if name == "haul":
        effect("haul began", **tag)
        while not os.path.exists(arguments["until"]):
            time.sleep(0.05)
    if name in QUESTIONS:
        given_answers = asked(name, params)
        if given_answers is None:
            return {"resultType": "input_required", "inputRequests": QUESTIONS[name], "requestState": "draft"}
        answers = given_answers
    done = all(answer["action"] == "accept" for answer in answers.values())
    if done:
        effect(name, answers=answers, **tag)
    given = {key: answer.get("content") for key, answer in answers.items()}
    return {"resultType": "complete", "content": [], "structuredContent": {"done": done, "given": given}}


def main() -> None:
    while True:
        message = receive()
        request_id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if request_id is None:
            continue
        if method == "server/discover" and "modern" in sys.argv:
            facts = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            send(
                id=request_id, result={"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **facts}
            )
        elif method == "initialize" and "legacy" in sys.argv:
            info = {"name": "parcels", "version": "1"}
            send(
                id=request_id,
                result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info},
            )
        elif method == "tools/list":
            send(id=request_id, result={"resultType": "complete", "tools": TOOLS})
        elif method == "tools/call" and params["name"] != "hang":
            send(id=request_id, result=call(params["name"], params))
        elif method != "tools/call":
            send(id=request_id, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
