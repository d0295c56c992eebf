"""`manage.py export`: write an account into a file, to go on with it in another installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.gate import PolicyGate
from m3web.management.commands.apikey import the_account
from m3web.moving import exporting
from m3web.moving.exporting import Exported
from m3web.moving.refusals import Refused
from runs import database
from runs.engines.in_process import AlreadyRunningError, InProcess
from runs.models import Account


class Command(BaseCommand):
    help = (
        "Write an account into a file and close it here, so that it goes on only where the file is imported; see "
        "docs/moving.md. Stop every process first. --copy writes it while it goes on here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write; it must not be there yet")
        parser.add_argument("--account", help="slug of the account; needed only if there are several")
        parser.add_argument(
            "--copy", action="store_true", help="do not close the account; a copy comes closed"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not database.is_up_to_date():
            raise CommandError(
                "The database is of another version. Run manage.py migrate, or start manage.py up once."
            )
        account, file = the_account(options["account"]), options["file"]
        try:
            if options["copy"]:
                self._told(exporting.copy(account, file), account, file)
                self.stdout.write(
                    "It is a copy: imported, it stays closed until `manage.py reopen --nowhere-else`."
                )
            else:
                self._told(hand_over(account, file), account, file)
                self.stdout.write(
                    f"{account.name} is closed here. Import the file, into one installation only. If it went nowhere, "
                    "`manage.py reopen --nowhere-else` is the way back."
                )
        except Refused as error:
            raise CommandError(str(error)) from error

    def _told(self, done: Exported, account: Account, file: Path) -> None:
        self.stdout.write(f"{account.name}: {done.rows} rows, {done.live_runs} unfinished runs, in {file}")
        self.stdout.write(f"sha256 {done.digest}")
        for run_id, server in done.live_sessions:
            self.stdout.write(
                f"Run {run_id} waits on a live session of the older server {server}, which stays on this machine. "
                "Elsewhere its call is made again where that does no harm, else the run fails. Have it answered first."
            )


def hand_over(account: Account, file: Path) -> Exported:
    """Export for good, while no other process drives runs. Raises Refused, CommandError."""
    engine = InProcess(PolicyGate())
    try:
        engine.lock()
    except AlreadyRunningError as error:
        raise CommandError(str(error)) from error
    try:
        return exporting.hand_over(account, file, alone=database.current().file is not None)
    finally:
        engine.unlock()
