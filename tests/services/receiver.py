"""A receiver of webhooks on loopback, with a check of signatures written from the contract alone."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.mcp.bindings import wait_for


@dataclass
class Got:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def message(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


@dataclass
class Receiver:
    """`answers` are given one after the other, the last one for ever: a status, with a header or a body if needed."""

    url: str
    answers: list[tuple[int, dict[str, str], bytes]]
    got: list[Got] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    """Cleared, every request is left waiting."""

    def wait(self, number: int) -> list[Got]:
        wait_for(lambda: len(self.got) >= number, f"{number} webhooks")
        return self.got


@contextmanager
def receiver(*answers: int | tuple[int, dict[str, str], bytes]) -> Iterator[Receiver]:
    full = [(answer, {}, b"ok") if isinstance(answer, int) else answer for answer in answers or (200,)]
    state = Receiver(url="", answers=full)
    state.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.got.append(Got(self.path, dict(self.headers.items()), body, time.monotonic()))
            state.hold.wait(60)
            status, headers, content = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield state
    finally:
        state.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def is_signed(got: Got, secret: str) -> bool:
    """`v1=` and the HMAC-SHA256 of id, moment and body with dots between, by the text of the secret (m8tes-http 7)."""
    headers = {name.lower(): value for name, value in got.headers.items()}
    message = ".".join([headers["webhook-id"], headers["webhook-timestamp"], got.body.decode()])
    right = "v1=" + hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()
    return headers["webhook-signature"] == right
