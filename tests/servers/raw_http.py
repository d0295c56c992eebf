"""An HTTP server on a thread that answers every POST as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODERN = {
    "discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
}
"""A saved negotiation, so that the operation itself is the first request."""


@dataclass
class Reply:
    """What to answer: a JSON body, or bytes, with a status and headers. None as status hangs up instead."""

    body: Any = None
    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Answerer = Callable[[dict[str, Any], dict[str, str]], Reply]


@dataclass
class RawHttp:
    """`answer(message, headers)` makes the reply; `seen` are the messages so far, with their headers."""

    url: str
    answer: Answerer
    seen: list[tuple[dict[str, Any], dict[str, str]]] = field(default_factory=list)

    def methods(self) -> list[str]:
        return [message.get("method", "") for message, _ in self.seen]


def result(message: dict[str, Any], **fields: Any) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **fields}})


def error(message: dict[str, Any], code: int, text: str, status: int = 400) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}}, status)


@contextmanager
def raw_http(answer: Answerer) -> Iterator[RawHttp]:
    """Serve on a free port of 127.0.0.1 until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append((message, headers))
            reply = server.answer(message, headers)
            if reply.status is None:
                self.close_connection = True
                return
            body = reply.encoded()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = RawHttp(f"http://127.0.0.1:{listener.server_address[1]}/mcp", answer)
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(10)
