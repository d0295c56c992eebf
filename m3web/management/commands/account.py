"""`manage.py account`: an account and its first admin, for an installation without demo mode."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils.text import slugify

from runs import audit
from runs.models import Account, Membership, Role, User

PASSWORD_VARIABLE = "M3_ADMIN_PASSWORD"  # noqa: S105 - the name of a variable, not a password


class Command(BaseCommand):
    help = (
        "Create an account and make a user its admin. Running it again changes nothing. The password of a new "
        f"user is taken from {PASSWORD_VARIABLE}, else from standard input, else asked for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="name of the account, for example of your company")
        parser.add_argument("--admin", required=True, metavar="USERNAME", help="who administers it")
        parser.add_argument(
            "--superuser",
            action="store_true",
            help="the user may also use /admin/, where people of every account are added",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            user = existing_or_new(options["admin"])
            account = account_named(options["name"])
            make_admin(user, account)
            if options["superuser"]:
                user.is_staff = user.is_superuser = True
                user.save(update_fields=["is_staff", "is_superuser"])
        self.stdout.write(f"{user.get_username()} is admin of {account.name}.")


def existing_or_new(username: str) -> User:
    """The user of this name; a new one gets a password, an existing one keeps theirs.

    Raises CommandError for a name or password that Django's rules refuse.
    """
    found = User.objects.filter(username=username).first()
    if found is not None:
        return found
    user = User(username=username)
    try:
        user.clean_fields(exclude=["password"])
        password = given_password()
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    user.set_password(password)
    user.save()
    return user


def given_password() -> str:
    """From the environment, from a pipe, or asked for twice at a terminal. Raises CommandError if there is none."""
    password = os.environ.get(PASSWORD_VARIABLE, "")
    if not password and not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    elif not password:
        password = getpass.getpass("Password: ")
        if getpass.getpass("Once more: ") != password:
            raise CommandError("The two passwords differ. Nothing was created; try again.")
    if not password:
        raise CommandError(f"A new user needs a password. Set {PASSWORD_VARIABLE}, or pipe it in.")
    return password


def account_named(name: str) -> Account:
    """The account of this name, made if it is not there. Raises CommandError for a name without letters or digits."""
    slug = slugify(name)[:50]
    if not slug or len(name) > 120:
        raise CommandError(
            "The name of an account has up to 120 characters, with letters or digits among them."
        )
    found = Account.objects.filter(slug=slug).first()
    if found is not None and found.name != name:
        raise CommandError(f"The name is too close to that of the account {found.name}. Choose another.")
    return found or Account.objects.create(name=name, slug=slug)


def make_admin(user: User, account: Account) -> None:
    """Give the user the role; raises CommandError for somebody of another account, since a person acts in one."""
    elsewhere = (
        Membership.objects.filter(user=user).exclude(account=account).select_related("account").first()
    )
    if elsewhere is not None:
        raise CommandError(
            f"{user.get_username()} belongs to {elsewhere.account.name} already. Choose another user name."
        )
    if Membership.objects.filter(account=account, user=user, role=Role.ADMIN.value).exists():
        return
    Membership.objects.update_or_create(account=account, user=user, defaults={"role": Role.ADMIN.value})
    facts = {"name": user.get_username(), "role": Role.ADMIN.value}
    audit.note(account, None, "member.set", f"user {user.pk}", facts)
