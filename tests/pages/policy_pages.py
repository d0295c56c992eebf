"""What the tests of the policy pages share: a form as a browser sends it, and the look that comes before saving."""

from __future__ import annotations

import html
import re
from typing import Any

from django.test import Client

WRITTEN: dict[str, Any] = {"effect": "allow", "target": "desk:send_email", "scope": "account", "rows": "1"}


def text_of(response: Any) -> str:
    """The page as a person reads it, near enough: without tags, entities written out."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def hidden(response: Any, name: str) -> str:
    """What a hidden field of the page holds."""
    found = re.search(rf'type="hidden" name="{name}" value="([^"]*)"', response.content.decode())
    assert found, name
    return html.unescape(found[1])


def look(client: Client, **written: Any) -> Any:
    """Fill in the form and look at the rule; nothing is saved by it."""
    return client.post("/policies/new", {**WRITTEN, **written, "step": "look"})


def save(client: Client, *, confirm: bool = False, **written: Any) -> Any:
    """Look at a rule and save what was shown."""
    shown = hidden(look(client, **written), "shown")
    ticked = {"confirm": "1"} if confirm else {}
    return client.post("/policies/new", {**WRITTEN, **written, **ticked, "shown": shown, "step": "save"})
