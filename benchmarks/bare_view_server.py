"""The bare view: daphne and the smallest DRF view there is. `python -m benchmarks.bare_view_server PORT [lasting]`.

No database, no middleware, nobody to authenticate, three fields of JSON: whatever a request costs here is the price of
daphne, Django and DRF, which every request to the product pays too. With `lasting`, requests are served by the
product's own handler, whose threads stay, instead of Django's.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def main(port: int, *, lasting: bool) -> None:
    # Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
    from daphne.server import Server  # isort: skip

    from django.conf import settings
    from django.core.asgi import get_asgi_application

    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=_urls(),
        INSTALLED_APPS=["rest_framework"],
        REST_FRAMEWORK={
            "DEFAULT_AUTHENTICATION_CLASSES": [],
            "DEFAULT_PERMISSION_CLASSES": [],
            "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
            "UNAUTHENTICATED_USER": None,
        },
    )
    application = get_asgi_application()
    if lasting:
        from m3web.http_handler import http_application

        application = http_application()
    Server(application=application, endpoints=[f"tcp:{port}:interface=127.0.0.1"], verbosity=0).run()


def _urls() -> Any:
    """A module of routes that is filled once the settings stand; DRF reads them when it is imported."""

    class Routes(ModuleType):
        @property
        def urlpatterns(self) -> list[Any]:
            return _patterns()

    return Routes("bare_view_urls")


def _patterns() -> list[Any]:
    from django.urls import path
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.views import APIView

    class Bare(APIView):
        def get(self, _request: Request, number: int) -> Response:
            return Response({"id": number, "status": "running", "output": None})

    return [path("api/v2/runs/<int:number>", Bare.as_view())]


if __name__ == "__main__":
    main(int(sys.argv[1]), lasting=sys.argv[2:] == ["lasting"])
