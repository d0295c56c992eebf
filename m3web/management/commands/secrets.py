"""`manage.py secrets --lost`: go on with a database whose secrets are gone."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.gate import PolicyGate
from m3web import belonging
from m3web.preparing import one_at_a_time
from runs import database
from runs.engines.in_process import AlreadyRunningError, InProcess


class Command(BaseCommand):
    help = (
        "Give a database to the secrets of this process, because those that it was written with are lost. What cannot "
        "be read with these is emptied, for good. Stop every process first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--lost", action="store_true", help="say that the secrets from before are gone")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["lost"]:
            raise CommandError(
                "What was encrypted with other secrets will be emptied, for good. If those are gone, say so: --lost"
            )
        engine = InProcess(PolicyGate())
        try:
            engine.lock()
            if not database.is_up_to_date():
                raise CommandError("The database is of another version. Run manage.py migrate first.")
            with one_at_a_time():
                told = belonging.adopt()
        except AlreadyRunningError as error:
            raise CommandError(str(error)) from error
        finally:
            engine.unlock()
        for each in told:
            self.stdout.write(f"Enter anew: {each}")
        self.stdout.write("The database belongs to the secrets of this process.")
