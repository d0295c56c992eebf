"""The forms with which people sign in. Django's own let a name of any length through to the record of failed tries."""

from __future__ import annotations

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.forms import TextInput

from runs.models import User


def _name() -> UsernameField:
    longest = User._meta.get_field("username").max_length
    return UsernameField(max_length=longest, widget=TextInput(attrs={"autofocus": True}))


class SignInForm(AuthenticationForm):
    username = _name()


class AdminSignInForm(AdminAuthenticationForm):
    username = _name()
