"""`manage.py import`: go on here with an account that another installation has exported."""

# ruff: noqa: N999 - the name of a command, which no program imports

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.gate import PolicyGate
from m3web.moving import importing, secrets, versions
from m3web.moving.refusals import Refused
from m3web.preparing import one_at_a_time
from runs import database
from runs.engines.in_process import AlreadyRunningError, InProcess


class Command(BaseCommand):
    help = (
        "Import an account that manage.py export wrote: all of it, with its ids, or nothing; see docs/moving.md. An "
        "empty database gets its tables first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="what manage.py export wrote")
        parser.add_argument(
            "--check", action="store_true", help="do everything, say what would be imported, and take it back"
        )
        parser.add_argument(
            "--secrets",
            type=Path,
            metavar="FOLDER",
            help="with the files secret_key and encryption_salt of the installation that wrote it (default: as here)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        engine = InProcess(PolicyGate())
        try:
            theirs = secrets.in_folder(options["secrets"]) if options["secrets"] else secrets.own()
            engine.lock()
            prepare()
            done = importing.load(options["file"], theirs, only_check=options["check"])
        except (Refused, AlreadyRunningError) as error:
            raise CommandError(str(error)) from error
        finally:
            engine.unlock()
        head = done.head
        would = "would be " if options["check"] else ""
        self.stdout.write(f"{head.name} ({head.slug}): {sum(head.rows.values())} rows {would}imported.")
        for note in done.notes:
            self.stdout.write(note)
        if options["check"]:
            self.stdout.write("Nothing was imported.")
        elif head.purpose == "copy":
            self.stdout.write(
                "It is a copy, and closed. `manage.py reopen --nowhere-else` opens it, if it goes on nowhere else."
            )
        else:
            self.stdout.write(
                "Its runs go on with the next look of a worker. Check its histories: manage.py audit verify"
            )


def prepare() -> None:
    """Make the tables in an empty database. Raises CommandError for one of another version."""
    with one_at_a_time():
        if versions.is_empty():
            call_command("migrate", verbosity=0, interactive=False)
    if not database.is_up_to_date():
        raise CommandError(
            "The database is of another version. Run manage.py migrate, or start manage.py up once."
        )
