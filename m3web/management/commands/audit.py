"""`manage.py audit`: check the histories, print the end of each ledger, write everything out for others to check."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs import audit_check, audit_export
from runs.models import Account, Ledger

_ANCHOR = re.compile(r"([1-9][0-9]{0,17}):(sha256:[0-9a-f]{64})")


class Command(BaseCommand):
    help = "Check, anchor and export what is recorded of every run and every change; see docs/audit.md."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        verify = actions.add_parser(
            "verify", help="check every chain; names the first wrong row of each, and then ends with status 1"
        )
        verify.add_argument(
            "--head",
            action="append",
            type=anchor,
            default=[],
            metavar="NUMBER:HASH",
            help="an end of the ledger that `audit head` printed and you kept; needs --account if there are several",
        )
        head = actions.add_parser("head", help="print where each ledger ends, to be kept somewhere else")
        export = actions.add_parser("export", help="write ledger and events as JSON Lines")
        for each in (verify, head, export):
            each.add_argument("--account", help="slug of the account (default: all)")

    def handle(self, *args: Any, **options: Any) -> None:
        accounts = chosen(options["account"])
        match options["action"]:
            case "verify":
                self._verify(accounts, dict(options["head"]))
            case "head":
                for account in accounts:
                    self._head(account)
            case _:
                for account in accounts:
                    for line in audit_export.lines(account):
                        self.stdout.write(line)

    def _verify(self, accounts: list[Account], anchors: dict[int, str]) -> None:
        if anchors and len(accounts) > 1:
            raise CommandError("An end belongs to one account. Say which: --account SLUG.")
        wrong = 0
        for account in accounts:
            for problem in audit_check.check(account, anchors=anchors):
                wrong += 1
                self.stdout.write(str(problem))
        if wrong:
            self.stderr.write(f"{wrong} of the histories are not as they were written.")
            sys.exit(1)
        self.stdout.write(f"{len(accounts)} accounts checked: every history is as it was written.")

    def _head(self, account: Account) -> None:
        ledger = Ledger.objects.filter(account=account).first()
        self.stdout.write(f"{account.slug} {ledger.seq}:{ledger.head}" if ledger else f"{account.slug} 0")


def chosen(slug: str | None) -> list[Account]:
    """The account of this slug, or all. Raises CommandError if there is no such account."""
    accounts = list(Account.objects.filter(slug=slug) if slug else Account.objects.order_by("pk"))
    if slug and not accounts:
        raise CommandError(f"There is no account {slug}.")
    return accounts


def anchor(text: str) -> tuple[int, str]:
    """`128:sha256:…` as number and hash. Raises argparse.ArgumentTypeError."""
    found = _ANCHOR.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("expected NUMBER:sha256:HASH, as `audit head` prints it")
    return int(found[1]), found[2]
