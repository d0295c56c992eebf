"""The ASGI application: pages and API over HTTP, hints over WebSocket."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator

from m3web.http_handler import http_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
http = http_application()

from m3web.sockets import routes  # noqa: E402  (needs the app registry)

application = ProtocolTypeRouter(
    {"http": http, "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(routes)))}
)
