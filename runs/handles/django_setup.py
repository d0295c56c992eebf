"""Django for a program that has none. Nothing else of this package may be imported before it."""

from __future__ import annotations

import os

import django
from django.apps import apps
from django.conf import settings


def ensure() -> None:
    """Configure Django with this product's settings, unless the program runs inside a Django already.

    Logging is left as the program has it. The settings keep their secrets in `M3_DATA_DIR`; see docs/managed-input.md.
    """
    if apps.loading or apps.ready:
        return
    if not settings.configured:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
        settings.LOGGING_CONFIG = None
    django.setup()
