"""The bare group: daphne and the smallest Channels consumer that hands on what a group is told.
`python -m benchmarks.group_server PORT [REDIS_URL]`; whatever a client says is sent to the group of all."""

from __future__ import annotations

import sys
from typing import Any


def main(port: int, redis_url: str = "") -> None:
    # Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
    from daphne.server import Server  # isort: skip

    from channels.generic.websocket import AsyncWebsocketConsumer
    from channels.routing import ProtocolTypeRouter
    from django.conf import settings

    redis = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis_url]}}
    memory = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    settings.configure(CHANNEL_LAYERS={"default": redis if redis_url else memory})

    class Member(AsyncWebsocketConsumer):  # type: ignore[misc]
        groups = ["all"]

        async def websocket_connect(self, message: Any) -> None:
            await super().websocket_connect(message)
            await self.send(text_data="hello")

        async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
            await self.channel_layer.group_send("all", {"type": "said", "text": text_data})

        async def said(self, message: dict[str, Any]) -> None:
            await self.send(text_data=message["text"])

    application = ProtocolTypeRouter({"websocket": Member.as_asgi()})
    Server(application=application, endpoints=[f"tcp:{port}:interface=127.0.0.1"], verbosity=0).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
