"""`manage.py forget` deletes kept texts that nothing refers to, and nothing that a rule was made for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from io import StringIO

from django.core.management import call_command
from django.utils import timezone

from runs.models import Account, IdempotencyKey, Run, SeenDefinition, Server
from runs.tool_rows import store_tools
from tests.services.test_renewals import allow, mail


def test_texts_that_nothing_refers_to_are_forgotten_after_a_month(desk: Server, account: Account) -> None:
    for maximum in (1, 2, 3):
        store_tools(desk, [mail(maximum)])
        if maximum == 1:
            allow(account, "desk:send_email")
    out = StringIO()
    call_command("forget", stdout=out)
    assert out.getvalue().splitlines()[0] == "Acme: 0 definitions and 0 addresses forgotten."

    SeenDefinition.objects.update(seen_at=timezone.now() - dt.timedelta(days=31))
    out = StringIO()
    call_command("forget", stdout=out)
    assert out.getvalue().splitlines()[0] == "Acme: 1 definitions and 0 addresses forgotten."
    kept = set(SeenDefinition.objects.values_list("digest", flat=True))
    assert kept == {mail(1).digest, mail(3).digest}


def test_keys_of_requests_are_forgotten_after_a_week(account: Account, make_run: Callable[..., Run]) -> None:
    turn = make_run().turns.get()
    for key, age in (("old", 8), ("young", 6)):
        row = IdempotencyKey.objects.create(account=account, key=key, request_digest="sha256:d", turn=turn)
        IdempotencyKey.objects.filter(pk=row.pk).update(created_at=timezone.now() - dt.timedelta(days=age))
    out = StringIO()

    call_command("forget", stdout=out)

    assert out.getvalue().splitlines()[-1] == "1 keys of requests forgotten."
    assert IdempotencyKey.objects.get().key == "young"
