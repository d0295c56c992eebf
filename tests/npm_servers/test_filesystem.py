"""server-filesystem: reading and writing files for real, and what its annotations are worth."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from approvals.permission import CallFacts, Code, Effect, decide
from runs.mcp_client import Completed, Inspection, StdioBinding, inspect
from runs.risk import Risk, effective_risk, effectively_idempotent
from runs.run_states import PermissionMode
from tests.mcp.bindings import LEGACY, PATIENCE
from tests.mcp.recorder import Recorder, text_of

pytestmark = pytest.mark.node

NOW = datetime(2026, 5, 1, tzinfo=UTC)
READS = {
    "directory_tree",
    "get_file_info",
    "list_allowed_directories",
    "list_directory",
    "list_directory_with_sizes",
    "read_file",
    "read_media_file",
    "read_multiple_files",
    "read_text_file",
    "search_files",
}
OVERWRITES = {"edit_file", "move_file", "write_file"}


async def look(filesystem: StdioBinding) -> Inspection:
    return await inspect(filesystem, saved=LEGACY, timeout=PATIENCE)


async def call(recorder: Recorder, filesystem: StdioBinding, name: str, **arguments: Any) -> Completed:
    """Call a tool whose result is checked against the tool's own output schema."""
    definition = next(tool for tool in (await look(filesystem)).tools if tool.name == name)
    done = await recorder.perform(filesystem, name, arguments, saved=LEGACY, definition=definition)
    assert isinstance(done, Completed)
    assert done.problem is None
    return done


def risks(found: Inspection, *, trusted: bool) -> dict[str, Risk]:
    return {
        tool.name: effective_risk(admin=None, annotations=tool.annotations, trusted=trusted, tool=tool.name)
        for tool in found.tools
    }


def verdict(name: str, risk: Risk) -> tuple[Effect, Code]:
    facts = CallFacts(target=f"files:{name}", risk=risk, mode=PermissionMode.APPROVAL, run_id=1)
    decision = decide(facts, [], now=NOW)
    return decision.effect, decision.code


# --- what it does -----------------------------------------------------------------------------------------


async def test_a_file_is_written_and_read_back(
    filesystem: StdioBinding, folder: Path, recorder: Recorder
) -> None:
    path, text = str(folder / "note.txt"), "first line\nzweite Zeile – 世界\n"
    await call(recorder, filesystem, "write_file", path=path, content=text)
    assert (folder / "note.txt").read_text() == text
    assert text_of(await call(recorder, filesystem, "read_text_file", path=path)) == text


async def test_a_file_is_edited_and_moved_within_the_folder(
    filesystem: StdioBinding, folder: Path, recorder: Recorder
) -> None:
    (folder / "draft.txt").write_text("Dear Ann,\nsee you on Monday.\n")
    draft, sent = str(folder / "draft.txt"), str(folder / "sent.txt")
    edits = [{"oldText": "Monday", "newText": "Friday"}]
    await call(recorder, filesystem, "edit_file", path=draft, edits=edits)
    await call(recorder, filesystem, "move_file", source=draft, destination=sent)
    assert {entry.name: entry.read_text() for entry in folder.iterdir()} == {
        "sent.txt": "Dear Ann,\nsee you on Friday.\n"
    }


async def test_a_folder_is_listed(filesystem: StdioBinding, folder: Path, recorder: Recorder) -> None:
    (folder / "a.txt").touch()
    (folder / "sub").mkdir()
    listed = text_of(await call(recorder, filesystem, "list_directory", path=str(folder)))
    assert set(listed.splitlines()) == {"[FILE] a.txt", "[DIR] sub"}


async def test_a_path_outside_the_folder_is_the_tools_own_error(
    filesystem: StdioBinding, tmp_path: Path, recorder: Recorder
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    done = await call(recorder, filesystem, "read_text_file", path=str(tmp_path / "secret.txt"))
    assert done.is_error
    assert "Access denied" in text_of(done)


# --- what its annotations are worth -----------------------------------------------------------------------


async def test_a_trusted_servers_annotations_tell_reading_writing_and_overwriting_apart(
    filesystem: StdioBinding,
) -> None:
    assert risks(await look(filesystem), trusted=True) == {
        **dict.fromkeys(READS, Risk.READ),
        **dict.fromkeys(OVERWRITES, Risk.DESTROY),
        "create_directory": Risk.WRITE,
    }


async def test_the_annotations_of_a_server_that_nobody_vouches_for_count_for_nothing(
    filesystem: StdioBinding,
) -> None:
    assert set(risks(await look(filesystem), trusted=False).values()) == {Risk.WRITE}


async def test_in_approval_mode_a_trusted_server_reads_freely_and_asks_before_it_writes(
    filesystem: StdioBinding,
) -> None:
    found = risks(await look(filesystem), trusted=True)
    assert {name: verdict(name, risk) for name, risk in found.items()} == {
        **dict.fromkeys(READS, (Effect.ALLOW, Code.SAFE)),
        **dict.fromkeys(OVERWRITES, (Effect.ASK, Code.HIGH_STAKES)),
        "create_directory": (Effect.ASK, Code.NO_RULE),
    }


async def test_in_approval_mode_a_server_that_nobody_vouches_for_asks_before_it_reads(
    filesystem: StdioBinding,
) -> None:
    found = risks(await look(filesystem), trusted=False)
    assert {verdict(name, risk) for name, risk in found.items()} == {(Effect.ASK, Code.NO_RULE)}


async def test_only_a_trusted_server_may_say_which_calls_can_be_made_again(filesystem: StdioBinding) -> None:
    tools = (await look(filesystem)).tools

    def repeatable(*, trusted: bool) -> set[str]:
        return {
            tool.name
            for tool in tools
            if effectively_idempotent(
                admin=None, admin_idempotent=None, annotations=tool.annotations, trusted=trusted
            )
        }

    assert repeatable(trusted=True) == READS | {"create_directory", "write_file"}
    assert repeatable(trusted=False) == set()
