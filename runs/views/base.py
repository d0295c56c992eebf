"""What every page here needs: a signed-in actor with a role, and the way back from a refused form."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from runs.access import Actor, actor_for
from runs.errors import M3Error
from runs.models import Role

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, Actor, P], HttpResponse]


def page(*methods: str, role: Role = Role.VIEWER) -> Callable[[View[P]], Callable[..., HttpResponse]]:
    """Hand the view its actor, whose role is at least `role`; `methods` default to reading.

    A refusal is an M3Error and becomes a page in the middleware.
    """

    def decorate(view: View[P]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def with_actor(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            actor = actor_for(request.user)
            actor.require(role)
            return view(request, actor, *args, **kwargs)

        return require_http_methods(list(methods or ("GET", "HEAD")))(login_required(with_actor))

    return decorate


def filters(request: HttpRequest, *names: str) -> dict[str, str]:
    """The query's filters, trimmed; "" for those left out. A NUL is in no stored text, and PostgreSQL refuses it."""
    return {name: request.GET.get(name, "").replace("\x00", "").strip() for name in names}


def number(text: str) -> int | None:
    """A number from a URL, small enough for any database; None if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def show_mistakes(form: BaseForm, error: M3Error) -> None:
    """Put a service's refusal beside the fields that it names, or on top of the form; typed text stays."""
    fields: list[dict[str, Any]] = error.details.get("fields", [])
    for mistake in fields:
        name = str(mistake["path"][0]) if mistake["path"] else ""
        form.add_error(name if name in form.fields else None, mistake["message"])
    if not fields:
        form.add_error(None, error.message)
