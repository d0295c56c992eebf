"""`manage.py forget`: delete what is kept for a time only: texts that nothing refers to, keys of old requests."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from approvals import pins
from runs import definitions, idempotency
from runs.models import Account


class Command(BaseCommand):
    help = (
        "Delete kept definitions of tools and addresses of servers that no server lists, no turn or call names and no "
        f"rule was made for. What is younger than {definitions.UNUSED_FOR.days} days stays. Also the keys of requests "
        f"that are older than {idempotency.KEPT_FOR.days} days."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for account in Account.objects.order_by("pk"):
            pinned = pins.pinned_digests(account.pk)
            tools, servers = definitions.forget(account.pk, pinned=pinned)
            self.stdout.write(f"{account.name}: {tools} definitions and {servers} addresses forgotten.")
        self.stdout.write(f"{idempotency.forget()} keys of requests forgotten.")
