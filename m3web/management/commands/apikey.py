"""`manage.py apikey`: keys for programs, without the page."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs import keys
from runs.errors import M3Error
from runs.models import Account, Role


class Command(BaseCommand):
    help = "Create, list and revoke the API keys of an account. A new key is printed once, alone on standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="make a key and print it")
        create.add_argument("name", help="what it is for, for example the program that will use it")
        create.add_argument("--role", choices=list(Role), default=Role.ADMIN.value, help="viewer: read only")
        create.add_argument("--days", type=int, help="valid for so many days (default: until it is revoked)")
        lister = actions.add_parser("list", help="the keys of the account, newest first")
        revoke = actions.add_parser("revoke", help="make a key invalid")
        revoke.add_argument("public_id", help="the middle part of the key, as `apikey list` shows it")
        for each in (create, lister, revoke):
            each.add_argument("--account", help="slug of the account; needed only if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        account = the_account(options["account"])
        match options["action"]:
            case "create":
                self._create(account, options)
            case "list":
                self._list(account)
            case _:
                self._revoke(account, options["public_id"])

    def _create(self, account: Account, options: dict[str, Any]) -> None:
        try:
            made = keys.issue(account, options["name"], role=Role(options["role"]), days=options["days"])
        except M3Error as error:
            raise CommandError(error.message) from error
        self.stderr.write(f"A key of {account.name}, role {made.key.role}. It is shown this once:")
        self.stdout.write(made.secret)

    def _list(self, account: Account) -> None:
        for key in account.api_keys.order_by("-pk"):
            state = "revoked" if key.revoked_at else f"last used {key.last_used_at or 'never'}"
            self.stdout.write(f"{key.public_id}  {key.role:8}  {key.name}  ({state})")

    def _revoke(self, account: Account, public_id: str) -> None:
        key = account.api_keys.filter(public_id=public_id).first()
        if key is None:
            raise CommandError(f"{account.name} has no key {public_id}. See `apikey list`.")
        keys.invalidate(key)
        self.stdout.write(f"The key {key.name} is no longer valid.")


def the_account(slug: str | None) -> Account:
    """The account of this slug, or the only one. Raises CommandError if that names none."""
    accounts = list(Account.objects.filter(slug=slug) if slug else Account.objects.order_by("pk")[:2])
    if len(accounts) == 1:
        return accounts[0]
    known = (
        ", ".join(Account.objects.values_list("slug", flat=True)[:20]) or "none yet; see `manage.py account`"
    )
    raise CommandError(f"Say which account: --account SLUG. There are: {known}")
