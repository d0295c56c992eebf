"""API keys of the account, for admins: the list, a new one shown once, and taking one back."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache

from runs import keys
from runs.access import Actor, visible
from runs.errors import M3Error
from runs.models import ApiKey, Role
from runs.views.base import page, show_mistakes

_ROLES = {
    Role.ADMIN: "Everything, servers, agents, policies and webhooks included.",
    Role.OPERATOR: "Starts runs and decides what waits.",
    Role.VIEWER: "Reads only.",
}


class KeyForm(forms.Form):
    """A key to be made."""

    name = forms.CharField(
        max_length=keys.MAX_NAME, help_text="What will use it, so that it can be told apart."
    )
    role = forms.ChoiceField(
        choices=[
            (role.value, format_html("{}<small>{}</small>", role.value.capitalize(), text))
            for role, text in _ROLES.items()
        ],
        widget=forms.RadioSelect,
        label="What it may do",
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=keys.MAX_DAYS,
        required=False,
        label="Days until it expires",
        help_text="Leave it empty for a key that does not expire.",
    )


@never_cache
@page("GET", "HEAD", "POST", role=Role.ADMIN)
def key_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Posting makes a key and answers with it: the one time that it can be read."""
    form = KeyForm(request.POST or None, initial={"role": Role.OPERATOR.value})
    made = None
    if form.is_bound and form.is_valid():
        given = form.cleaned_data
        try:
            made = keys.create(actor, given["name"], role=Role(given["role"]), days=given["days"])
        except M3Error as error:
            show_mistakes(form, error)
        else:
            form = KeyForm(initial={"role": Role.OPERATOR.value})
    now = timezone.now()
    rows = list(visible(actor, ApiKey.objects.select_related("created_by")).order_by("-pk"))
    context = {
        "section": "keys",
        "form": form,
        "made": made,
        "valid": [
            row for row in rows if row.revoked_at is None and not (row.expires_at and row.expires_at <= now)
        ],
        "ended": [row for row in rows if row.revoked_at or (row.expires_at and row.expires_at <= now)],
    }
    return render(request, "keys/list.html", context, status=422 if form.errors else 200)


@page("POST", role=Role.ADMIN)
def key_revoke(request: HttpRequest, actor: Actor, key_id: int) -> HttpResponse:
    key = keys.revoke(actor, key_id)
    messages.success(request, f"The key {key.name} is revoked: the next call with it is refused.")
    return redirect("key-list")
