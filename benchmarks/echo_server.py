"""The bare echo: daphne and the smallest Channels consumer there is. `python -m benchmarks.echo_server PORT`."""

from __future__ import annotations

import sys
from typing import Any


def main(port: int) -> None:
    # Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
    from daphne.server import Server  # isort: skip

    from channels.generic.websocket import AsyncWebsocketConsumer
    from channels.routing import ProtocolTypeRouter
    from django.conf import settings

    settings.configure()

    class Echo(AsyncWebsocketConsumer):  # type: ignore[misc]
        async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
            await self.send(text_data=text_data)

    application = ProtocolTypeRouter({"http": _empty_page, "websocket": Echo.as_asgi()})
    Server(application=application, endpoints=[f"tcp:{port}:interface=127.0.0.1"], verbosity=0).run()


async def _empty_page(scope: Any, receive: Any, send: Any) -> None:
    """Somewhere for the browser to open its socket from."""
    headers = [(b"content-type", b"text/html")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"<!doctype html><title>echo</title>"})


if __name__ == "__main__":
    main(int(sys.argv[1]))
