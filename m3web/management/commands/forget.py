"""`manage.py forget`: delete the texts of definitions and addresses that nothing refers to any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from approvals import pins
from runs import definitions
from runs.models import Account


class Command(BaseCommand):
    help = (
        "Delete kept definitions of tools and addresses of servers that no server lists, no turn or call names and no "
        f"rule was made for. What is younger than {definitions.UNUSED_FOR.days} days stays."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for account in Account.objects.order_by("pk"):
            pinned = pins.pinned_digests(account.pk)
            tools, servers = definitions.forget(account.pk, pinned=pinned)
            self.stdout.write(f"{account.name}: {tools} definitions and {servers} addresses forgotten.")
