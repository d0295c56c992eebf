"""A13: what an older version stored goes on under this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.utils import timezone

from runs import database, rounds
from runs.models import Round
from runs.round_rows import Decider
from tests.services.older import stepwise

FIRST = {"runs": "0001_initial", "approvals": "0002_initial"}
ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}


def as_of_the_first_version() -> Any:
    """Migrate the file to the first version that was given out; its models as they were then."""
    executor = stepwise()
    leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] not in FIRST]
    return executor.migrate([*leaves, *FIRST.items()]).apps


def pause_of(apps: Any) -> str:
    """A run whose call waits for a permission, with no more than the first version knew."""
    now = timezone.now()
    account = apps.get_model("runs", "Account").objects.create(name="Acme", slug="acme")
    agent = apps.get_model("runs", "Agent").objects.create(
        account=account, name="old", definition={"steps": []}
    )
    run = apps.get_model("runs", "Run").objects.create(
        account=account, agent=agent, message="go", status="waiting_for_input", human_input="managed"
    )
    turn = apps.get_model("runs", "Turn").objects.create(
        run=run, index=0, message="go", harness="playbook", status="waiting_for_input"
    )
    step = apps.get_model("runs", "Step").objects.create(
        run=run, turn=turn, seq=1, kind="call", path="steps.0"
    )
    form = {
        "type": "object",
        "properties": {"decision": {"enum": ["allow", "deny"]}},
        "required": ["decision"],
    }
    request = {"request_key": "approval", "mode": "form", "message": "?", "requested_schema": form}
    row = apps.get_model("runs", "Round").objects.create(
        id="of-the-first-version",
        account=account,
        run=run,
        turn=turn,
        step=step,
        kind="approval",
        logical_operation_id="approval:1",
        round_index=0,
        round_limit=10,
        requests={"approval": request},
        lease_owner="parked",
        lease_token="t",
        lease_expires_at=now,
        created_at=now,
        updated_at=now,
    )
    return str(row.pk)


def test_a_pause_of_the_first_version_is_answered_after_every_migration(tmp_path: Path, db: None) -> None:
    file = tmp_path / "old.sqlite"
    with database.file_connection(file):
        round_id = pause_of(as_of_the_first_version())
    database.prepare_file(file)
    with database.file_connection(file):
        answered = rounds.answer(round_id, ALLOW, decider=Decider(user=None, via="api"), idempotency_key="k")
        assert (answered.status, answered.outcome) == ("response_validated", "allowed")
        assert Round.objects.get().run.wake_seq == 1
