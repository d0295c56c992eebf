"""Text from servers and agents in templates: `{% load m3text %}{{ text|visible }}` (R13, R15)."""

from __future__ import annotations

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString

from runs import visible as visible_text

register = template.Library()


@register.filter(is_safe=True)
def visible(text: object) -> SafeString:
    """`text` with hidden characters written out, escaped: what comes in is never markup."""
    return escape(visible_text.visible(str(text)))


@register.filter
def has_hidden(text: object) -> bool:
    """Whether `visible` wrote something out, so that a template can warn."""
    return visible_text.has_hidden(str(text))
