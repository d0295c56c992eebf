"""What a client that attaches later still needs of a session, and what may reach the server at all.

The rules that make a call on a kept session happen once, whichever worker drives it: a request of ours goes to
the server once per id, an answer goes to it once per question, and what it said is said again to the next client
until a client has shown that it is dealt with.
"""

from __future__ import annotations

import json
from typing import Any


class Backlog:
    """Lines of one server in their order: its open questions, and its replies to our requests.

    A question is open until it is answered or withdrawn. A reply stays until the client asks something else.
    Notices (progress and the like) are for the client that is there when they come, and are not kept.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}
        self._asked: set[str] = set()
        self.bytes = 0

    def lines(self) -> list[bytes]:
        """What to tell a client that attaches, in the server's order."""
        return list(self._kept.values())

    def heard(self, line: bytes) -> None:
        """Take in one line of the server."""
        message = _message(line)
        if message is None:
            return
        key = _key(message.get("id"))
        if "method" not in message:
            if key in self._asked:
                self._keep(("reply", key), line)
        elif message.get("id") is not None:
            self._keep(("question", key), line)
        elif message["method"] == "notifications/cancelled":
            self._drop(("question", _cancelled(message)))

    def may_say(self, line: bytes) -> bool:
        """Take in one line for the server; whether it is to be passed on."""
        message = _message(line)
        if message is None:
            return False
        key = _key(message.get("id"))
        if "method" not in message:
            return self._drop(("question", key))
        if message.get("id") is None:
            return True
        if key in self._asked:
            return False
        for kept in [kept for kept in self._kept if kept[0] == "reply"]:
            self._drop(kept)
        self._asked.add(key)
        return True

    def _keep(self, key: tuple[str, str], line: bytes) -> None:
        self._drop(key)
        self._kept[key] = line
        self.bytes += len(line)

    def _drop(self, key: tuple[str, str]) -> bool:
        line = self._kept.pop(key, None)
        self.bytes -= len(line or b"")
        return line is not None


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _key(identifier: Any) -> str:
    """An id as text: 1 and "1" are two ids, 1 and 1.0 are one."""
    if isinstance(identifier, float) and identifier.is_integer():
        identifier = int(identifier)
    return json.dumps(identifier, sort_keys=True)


def _cancelled(message: dict[str, Any]) -> str:
    params = message.get("params")
    return _key(params.get("requestId") if isinstance(params, dict) else None)
