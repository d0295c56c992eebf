"""Where everything is."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path

from m3web import health
from m3web.api.routes import NothingHere
from m3web.sign_in import AdminSignInForm, SignInForm
from m3web.slashes import other_slash

admin.site.login_form = AdminSignInForm

urlpatterns: list[URLPattern | URLResolver] = [
    # First, because programs ask most, and every pattern before the right one is tried.
    path("api/v2/", include("m3web.api.routes")),
    path("api/<path:elsewhere>", NothingHere.as_view()),
    path("", include("approvals.urls")),
    path("", include("approvals.policy_urls")),
    path("", include("runs.urls")),
    path(
        "login",
        LoginView.as_view(redirect_authenticated_user=True, authentication_form=SignInForm),
        name="login",
    ),
    path("logout", LogoutView.as_view(), name="logout"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("<path:page>", other_slash),
]
