"""The store on a SQLite file of its own: the same store, one connection per operation (C47)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import OperationalError, connections
from django.db.models import F

from runs.database import file_connection
from runs.managed_input import ManagedInputStore, SQLiteManagedInputStore
from runs.models import Round, Run
from tests.core.pages import ROOT
from tests.services.managed_input.files import execution_in, run_in
from tests.services.managed_input.samples import (
    ACCEPTED,
    HOLDER,
    LEASE,
    STEPS,
    Clock,
    holder_of,
    opened,
    submitted,
)


@pytest.fixture
def file(db: None, tmp_path: Path) -> Path:
    path = tmp_path / "rounds.sqlite"
    SQLiteManagedInputStore(path)
    return path


@pytest.fixture
def execution(file: Path) -> str:
    return execution_in(file)


def test_a_round_goes_all_its_way_on_a_file(file: Path, execution: str, clock: Clock) -> None:
    store: ManagedInputStore = SQLiteManagedInputStore(str(file), clock=clock)
    opened(store, execution)
    clock.pass_(LEASE)
    taken = store.claim_round(
        execution,
        "round-1",
        owner_id="worker-2",
        lease_seconds=LEASE,
        expected_lease_token=HOLDER["lease_token"],
        delivery_state="not_started",
    )
    holder = holder_of(taken)
    store.renew(execution, "round-1", lease_seconds=2 * LEASE, **holder)
    submitted(store, execution, **holder)
    for step in STEPS:
        record = getattr(store, step)(execution, "round-1", **holder)

    assert (record.status, record.delivery_attempts) == ("resolved", 1)
    assert not Round.objects.exists(), "the installation's own database has nothing of it"


def test_a_new_store_on_the_same_file_reads_what_was_stored_and_starts_nothing(
    file: Path, execution: str
) -> None:
    """C37, C47."""
    opened(SQLiteManagedInputStore(file), execution)
    answered = submitted(SQLiteManagedInputStore(file), execution)
    before = run_in(file, execution).wake_seq

    again = SQLiteManagedInputStore(file)
    assert again.get_round(execution, "round-1") == answered
    assert again.list_rounds(execution) == (answered,)
    assert again.redacted_responses(execution, "round-1") is not None
    assert run_in(file, execution).wake_seq == before


def test_nothing_stays_open_between_operations(file: Path, execution: str) -> None:
    """C47: there is no close(), and nothing that would need one."""
    store = SQLiteManagedInputStore(file)
    own = connections["default"]
    opened(store, execution)

    assert connections["default"] is own
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)]
    assert not [path for path in held if path.startswith(str(file))]


def _is_link(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}")


def test_an_operation_waits_for_another_one_only_as_long_as_it_is_told_to(file: Path, execution: str) -> None:
    """C47: `busy_timeout_ms`."""
    patient, hasty = SQLiteManagedInputStore(file), SQLiteManagedInputStore(file, busy_timeout_ms=1)
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="locked"):
        opened(hasty, execution)

    threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
    assert opened(patient, execution).status == "pending"
    other.close()


@pytest.mark.parametrize("busy_timeout_ms", [-1, -5000])
def test_nobody_waits_for_less_than_no_time(tmp_path: Path, db: None, busy_timeout_ms: int) -> None:
    with pytest.raises(ValueError, match="busy_timeout_ms"):
        SQLiteManagedInputStore(tmp_path / "rounds.sqlite", busy_timeout_ms=busy_timeout_ms)


SUBMIT = """
import sys, django
django.setup()
from runs.managed_input import ElicitationResponse, SQLiteManagedInputStore
SQLiteManagedInputStore(sys.argv[1]).submit_responses(
    sys.argv[2], "round-1", {"address": ElicitationResponse(action="accept", content={"street": "Main St 1"})},
    owner_id="worker-1", lease_token="token-1", response_idempotency_key="k")
"""


def test_an_answer_from_another_process_makes_the_run_due(file: Path, execution: str, tmp_path: Path) -> None:
    """C27."""
    store = SQLiteManagedInputStore(file)
    opened(store, execution)
    with file_connection(file):
        Run.objects.filter(turns=execution).update(seen_seq=F("wake_seq"))
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "m3web.settings", "M3_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SUBMIT, str(file), execution]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, timeout=60)

    record = store.get_round(execution, "round-1")
    assert record is not None
    assert (record.status, record.responses) == ("response_validated", ACCEPTED)
    run = run_in(file, execution)
    assert run.wake_seq == run.seen_seq + 1
