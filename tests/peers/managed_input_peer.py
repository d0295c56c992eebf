"""The reference implementation's managed-input store as a process: one JSON call a line in, one answer a line out.

Runs in the peer's own environment (tests/peers/sf_m3.txt) and imports nothing of ours. A call is
{"call": name, "args": {...}}; an answer is {"ok": value} or {"error": class name, "code": its stable code}.

Besides the store's methods there are `open` (a new store on a new file, its clock at the given time), `set_clock`,
and `value` (only construct a value). Among the arguments, `pending` is a mapping, and a value of `responses` is
{"ElicitationResponse": {...}} for a value of that type; anything else is passed on as it is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from m3 import ElicitationResponse, FormElicitationRequest, PendingElicitationRound, UrlElicitationRequest
from m3.storage import ManagedInputRecord, SQLiteManagedInputStore

VALUES = {
    kind.__name__: kind
    for kind in (ElicitationResponse, FormElicitationRequest, PendingElicitationRound, UrlElicitationRequest)
}
METHODS = frozenset(
    {
        "create_round",
        "get_round",
        "list_rounds",
        "claim_round",
        "renew",
        "submit_responses",
        "start_delivery",
        "mark_delivered",
        "resolve",
        "fail",
        "fail_recovery",
        "redacted_responses",
    }
)


class Peer:
    """A store on a file in `folder`, and the time that it believes in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened = 0

    def open(self, now: str) -> None:
        self.now = datetime.fromisoformat(now)
        self.opened += 1
        file = self.folder / f"{self.opened}.sqlite3"
        self.store = SQLiteManagedInputStore(file, clock=lambda: self.now)

    def set_clock(self, now: str) -> None:
        self.now = datetime.fromisoformat(now)

    def value(self, kind: str, fields: dict[str, Any]) -> None:
        VALUES[kind](**fields)

    def call(self, name: str, args: dict[str, Any]) -> Any:
        if name in METHODS:
            return plain(getattr(self.store, name)(**typed(args)))
        return {"open": self.open, "set_clock": self.set_clock, "value": self.value}[name](**args)


def typed(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments with values of the store's own types in the places that have one."""
    args = dict(args)
    if isinstance(args.get("pending"), dict):
        args["pending"] = PendingElicitationRound(**args["pending"])
    if isinstance(args.get("responses"), dict):
        args["responses"] = {key: _response(value) for key, value in args["responses"].items()}
    return args


def _response(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"ElicitationResponse"}:
        return ElicitationResponse(**value["ElicitationResponse"])
    return value


def plain(value: Any) -> Any:
    """What a method returned, as JSON."""
    if isinstance(value, ManagedInputRecord):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def answer(peer: Peer, line: str) -> dict[str, Any]:
    request = json.loads(line)
    try:
        return {"ok": peer.call(request["call"], request["args"])}
    except Exception as error:
        return {"error": type(error).__name__, "code": getattr(error, "code", None)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(Path(folder))
        for line in sys.stdin:
            print(json.dumps(answer(peer, line)), flush=True)


if __name__ == "__main__":
    main()
