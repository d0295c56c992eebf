"""`manage.py reopen`: go on here with an account that was handed over and went nowhere, or that came as a copy."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from m3web.management.commands.apikey import the_account
from runs import closing
from runs.errors import StateConflict


class Command(BaseCommand):
    help = (
        "Open an account that manage.py export closed, or that came as a copy. If it goes on in another "
        "installation too, both act: calls are made twice, and histories part."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--account", help="slug of the account; needed only if there are several")
        parser.add_argument(
            "--nowhere-else", action="store_true", help="say that it goes on in no other installation"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = the_account(options["account"])
        if not options["nowhere_else"]:
            raise CommandError(
                f"If {account.name} goes on in another installation, its calls will be made twice. "
                "If it does not, say so: --nowhere-else"
            )
        try:
            closing.reopen(account.pk)
        except StateConflict as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{account.name} is open again. Its runs go on with the next look of a worker.")
