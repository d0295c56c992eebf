"""A page asked for with a slash too many or too few is found all the same; a POST never is, since a redirect would
turn it into a read. The API has exact addresses of its own and does not come here."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve


def other_slash(request: HttpRequest, page: str) -> HttpResponse:
    """Redirect to the same page with or without a slash at its end, if there is one. Raises Http404 if not."""
    other = request.path.removesuffix("/") if request.path.endswith("/") else f"{request.path}/"
    if request.method not in ("GET", "HEAD") or not other.strip("/"):
        raise Http404
    try:
        found = resolve(other)
    except Resolver404 as error:
        raise Http404 from error
    if found.func is other_slash:
        raise Http404
    # Only the path is taken over, so the target cannot be another host.
    return redirect(
        f"/{other.strip('/')}{'/' if other.endswith('/') else ''}?{request.GET.urlencode()}".rstrip("?")
    )
