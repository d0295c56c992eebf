"""An account with a run in every state moves from SQLite to PostgreSQL and goes on there, and back to SQLite."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from m3web.moving.secrets import Secrets, decrypted
from runs.models import Server, WebhookEndpoint
from runs.models.exact import original_json
from tests.mcp.bindings import ROOT, STATE_KEY, effects_in
from tests.requirements import new_postgres_database
from tests.services.moving_story import EXOTIC

pytestmark = pytest.mark.timeout(900)

OURS = ("M3_", "DATABASE_", "REDIS_")
SECRETS = {"M3_SECRET_KEY": secrets.token_hex(32), "M3_ENCRYPTION_SALT": secrets.token_hex(32)}


@dataclass
class Installation:
    """A data folder of its own, on a database."""

    folder: Path
    effects: Path
    database: str = ""

    def play(self, *words: str) -> dict[str, Any]:
        """What the program of the story tells."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        done = subprocess.run(
            [sys.executable, "-m", "tests.services.moving_story", *words],
            cwd=ROOT,
            env={**inherited, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def environment(self) -> dict[str, str]:
        def module(name: str, **env: str) -> dict[str, Any]:
            env = {"M3_EFFECTS": str(self.effects), **env}
            return {"command": sys.executable, "args": ["-m", name], "cwd": str(ROOT), "env": env}

        servers = {
            "shipping": module("m3web.demo_servers.shipping", M3_SHIPPING_STATE_KEY=STATE_KEY),
            "desk": module("m3web.demo_servers.desk"),
            "forgetful": module("tests.servers.playground"),
        }
        return {
            **SECRETS,
            "M3_DATA_DIR": str(self.folder),
            "M3_STDIO_SERVERS": json.dumps(servers),
            "M3_TEST_EFFECTS": str(self.effects),
            "M3_ALLOW_PRIVATE_URLS": "true",
            "M3_LOG_LEVEL": "WARNING",
            "M3_LEASE_SECONDS": "5",
            "M3_SWEEP_SECONDS": "0.3",
            "M3_KEEPER_ORPHAN_SECONDS": "20",
            **({"DATABASE_URL": self.database} if self.database else {}),
        }


@dataclass
class Move:
    """What was there before, what the commands said, and what came of it."""

    old: Installation
    new: Installation
    begun: dict[str, Any]
    ended: dict[str, Any]
    file: Path
    back: Path
    """A copy that the new installation exported before anything went on there."""


def rows_of(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of a file by table."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in file.read_text().splitlines()[1:-1]:
        label, columns = json.loads(line)
        found.setdefault(label, []).append(columns)
    return found


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Short enough for the sockets of keepers."""
    made = Path(tempfile.mkdtemp(prefix="m3mv"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def move(folder: Path) -> Iterator[Move]:
    effects = folder / "effects"
    with new_postgres_database() as url:
        old, new = (Installation(folder / name, effects) for name in ("old", "new"))
        new.database = url
        for one in (old, new):
            one.folder.mkdir()
        file, back = folder / "acme.jsonl", folder / "back.jsonl"
        begun = old.play("begin", str(file))
        ended = new.play("end", str(file), str(back), begun["key"])
        yield Move(old, new, begun, ended, file, back)


def test_every_pending_card_is_answered_once_and_its_run_goes_on(move: Move) -> None:
    assert move.ended["runs"] == {
        "approval": ["finished", "done", None],
        "form": ["finished", "done", None],
        "question": ["finished", "two one", None],
        "plan": ["finished", "approved", None],
        "outcome": ["finished", "done", None],
        "remembered": ["finished", "done", None],
        "sleep": ["finished", "rested", None],
        "long sleep": ["running_turn", None, None],
        "denied": ["finished", "denied", None],
        "stopped": ["finished", None, "agent_failed"],
        "session": ["finished", None, "managed_input_recovery_unavailable"],
    }
    assert move.ended["refused"] == 6, "a second answer to each of the cards"


def test_every_side_effect_happened_exactly_once_over_both_installations(move: Move) -> None:
    done = [(effect["what"], effect.get("subject")) for effect in effects_in(move.new.effects)]
    assert sorted(done, key=str) == sorted(
        [
            ("slow started", None),
            ("slow cancelled", None),
            ("ask_in_turn began", None),
            ("book_shipment", None),
            *(("send_email", subject) for subject in ("first", "second", "approval")),
        ],
        key=str,
    )


def test_nothing_is_another_than_it_was(move: Move) -> None:
    there, here = rows_of(move.file), rows_of(move.back)
    assert there.keys() == here.keys()
    for label, rows in there.items():
        came = {row["id"]: row for row in here[label] if "id" in row}
        for row in rows:
            if "id" in row:
                assert _lasting(label, came.pop(row["id"])) == _lasting(label, row)
        assert [row["action"] for row in came.values()] == ["account.imported"] * (
            label == "runs.ledgerentry"
        )


def _lasting(label: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is meant to differ: who holds what, and what is encrypted anew every time."""
    fleeting = {
        "runs.account": {"closed_at"},
        "runs.run": {"lease_owner", "lease_until", "pin"},
        "runs.round": {"lease_expires_at"},
        "runs.server": {"headers", "variables"},
        "runs.webhookendpoint": {"secret"},
    }
    return {name: value for name, value in row.items() if name not in fleeting.get(label, set())}


def test_every_state_was_in_the_file(move: Move) -> None:
    rows = rows_of(move.file)
    unresolved = [row for row in rows["runs.round"] if row["status"] == "pending"]
    assert sorted(row["kind"] for row in unresolved) == sorted(
        ["approval", "elicitation", "elicitation", "question", "question", "plan", "outcome"]
    )
    assert any(row["drafts"] != "{}" for row in unresolved)
    assert {row["scope"]: bool(row["suspended_reason"]) for row in rows["approvals.policy"]} == {
        "run": False,
        "user": True,
    }
    assert "pending" in {row["status"] for row in rows["runs.webhookdelivery"]}
    for label in ("toolword", "idempotencykey", "seendefinition", "apikey", "agent_servers"):
        assert rows[f"runs.{label}"], label


def test_what_postgresql_cannot_hold_comes_back_as_it_was(move: Move) -> None:
    (stored,) = [
        row["metadata"] for row in rows_of(move.back)["runs.run"] if row["id"] == move.begun["runs"]["denied"]
    ]
    assert json.dumps(original_json(stored)) == json.dumps(EXOTIC)


def test_people_keep_their_passwords_and_programs_their_keys(move: Move) -> None:
    assert move.ended["key"] == "shop"
    users = {row["username"]: row for row in rows_of(move.back)["runs.user"]}
    assert {"alice", "ada", "gone"} <= users.keys(), "also who left, if the history names them"
    with psycopg.connect(move.new.database) as opened:
        hashed = opened.execute("SELECT password FROM runs_user WHERE username = 'alice'").fetchone()
    assert hashed == (users["alice"]["password"],)


def test_secrets_are_ciphertext_in_the_file_and_readable_where_it_went(move: Move) -> None:
    text = move.file.read_text()
    secrets_ = Secrets(SECRETS["M3_SECRET_KEY"], SECRETS["M3_ENCRYPTION_SALT"])
    header, hook = Server._meta.get_field("headers"), WebhookEndpoint._meta.get_field("secret")

    def read(file: Path) -> list[Any]:
        rows = rows_of(file)
        (away,) = [row["headers"] for row in rows["runs.server"] if row["name"] == "away"]
        stored = [(header, away), *((hook, row["secret"]) for row in rows["runs.webhookendpoint"])]
        return [decrypted(field, value, secrets_.fernet) for field, value in stored]

    assert read(move.file) == read(move.back)
    assert read(move.file)[0] == {"X-Key": "hush é"}
    assert not any(secret in text for secret in ("hush", read(move.file)[1]))


def test_the_histories_verify_where_it_went_and_tell_of_the_move(move: Move) -> None:
    assert "every history is as it was written" in move.ended["verified"]
    told = [row["action"] for row in rows_of(move.back)["runs.ledgerentry"]][-2:]
    assert told == ["account.handed_over", "account.imported"]


def test_new_ids_begin_after_those_that_came(move: Move) -> None:
    for table in ("run", "event", "ledgerentry", "user", "webhookdelivery"):
        with (
            sqlite3.connect(move.old.folder / "m3web.sqlite3") as before,
            psycopg.connect(move.new.database) as now,
        ):
            (given,) = before.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = ?", [f"runs_{table}"]
            ).fetchone()
            found = now.execute(f"SELECT nextval(pg_get_serial_sequence('runs_{table}', 'id'))").fetchone()  # type: ignore[arg-type]
        assert found is not None
        assert found[0] > given


def test_export_names_the_session_that_cannot_move(move: Move) -> None:
    run = move.begun["runs"]["session"]
    assert f"Run {run} waits on a live session of the older server old" in move.begun["said"]


def test_the_old_installation_does_nothing_with_it_any_more(move: Move) -> None:
    with sqlite3.connect(move.old.folder / "m3web.sqlite3") as opened:
        live = opened.execute(
            "SELECT lease_owner, lease_until FROM runs_run WHERE status <> 'finished'"
        ).fetchall()
    assert len(live) == 9
    assert set(live) == {(None, "9999-01-01 00:00:00")}


def test_it_moves_back_to_sqlite_as_a_copy_that_opens_there(move: Move, folder: Path) -> None:
    third = Installation(folder / "third", move.old.effects)
    third.folder.mkdir()
    told = third.play("back", str(move.back))
    assert "It is a copy, and closed" in told["said"]
    assert "Acme is open again" in told["opened"]
    assert "every history is as it was written" in told["verified"]
    with sqlite3.connect(third.folder / "m3web.sqlite3") as opened:
        (pending,) = opened.execute("SELECT count(*) FROM runs_round WHERE status = 'pending'").fetchone()
        (held,) = opened.execute("SELECT count(*) FROM runs_run WHERE lease_until LIKE '9999%'").fetchone()
    assert (pending, held) == (7, 0)
