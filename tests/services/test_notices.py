"""Word to other processes that is lost does no harm: what was committed is committed, and nobody is alarmed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from runs import notices
from runs.models import Account
from runs.webhooks import outbox

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="notices go through a server"),
]


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    yield
    connection.close()


def break_connection() -> None:
    """The server ends the connection of this thread."""

    def end(pid: int) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:
        other.submit(end, connection.connection.info.backend_pid).result()


def test_a_connection_that_breaks_right_after_the_commit_costs_the_notice_alone(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with transaction.atomic():
        Account.objects.filter(pk=account.pk).update(name="Renamed")
        transaction.on_commit(break_connection)
        outbox.announce()
    connection.close()
    assert Account.objects.get(pk=account.pk).name == "Renamed"
    told = [(record.levelname, record.name) for record in caplog.records if record.name.startswith("runs")]
    assert told == [("INFO", "runs.notices")]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_inside_of_a_transaction_it_is_an_error_like_any_other(account: Account) -> None:
    @transaction.atomic
    def rename() -> None:
        Account.objects.filter(pk=account.pk).update(name="Renamed")
        break_connection()
        notices.send(notices.WEBHOOKS, "")

    with pytest.raises(OperationalError):
        rename()
