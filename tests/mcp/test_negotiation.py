"""The generation is found out once, saved, and found out anew when it no longer fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.mcp_client import Completed, Failed, HttpBinding, InspectionFailed, inspect
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, module, raw
from tests.mcp.recorder import Recorder

MODERN = {
    "discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
}


def methods(path: Path) -> list[str]:
    return [entry["message"].get("method") for entry in effects_in(path)]


async def test_a_modern_server_is_recognised_by_its_discovery(playground: HttpBinding) -> None:
    found = await inspect(playground, timeout=PATIENCE)
    assert found.protocol_version == "2026-07-28"
    assert set(found.negotiated) == {"discover"}


async def test_an_older_server_is_recognised_by_its_handshake() -> None:
    found = await inspect(raw("legacy"), timeout=PATIENCE)
    assert found.protocol_version == "2025-11-25"
    assert set(found.negotiated) == {"initialize"}


async def test_a_saved_discovery_costs_no_message(tmp_path: Path, recorder: Recorder) -> None:
    server = raw("modern", M3_EFFECTS=str(tmp_path / "seen"))
    assert isinstance(await recorder.perform(server, "bare", saved=MODERN), Completed)
    assert methods(tmp_path / "seen") == ["tools/call"]


async def test_a_saved_handshake_spares_the_probe(tmp_path: Path, recorder: Recorder) -> None:
    server = raw("legacy-mute", M3_EFFECTS=str(tmp_path / "seen"))
    assert isinstance(await recorder.perform(server, "bare", saved=LEGACY), Completed)
    assert methods(tmp_path / "seen") == ["initialize", "notifications/initialized", "tools/call"]


async def test_a_server_that_ends_on_the_probe_is_started_again_without_it(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("legacy-exits"), "bare")
    assert isinstance(outcome, Completed)
    assert set(outcome.negotiated) == {"initialize"}


async def test_a_server_that_became_modern_is_negotiated_anew(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "bare", saved=LEGACY)
    assert isinstance(outcome, Completed)
    assert set(outcome.negotiated) == {"discover"}


async def test_a_server_that_went_back_is_negotiated_anew_and_called_once(
    tmp_path: Path, recorder: Recorder
) -> None:
    """It refuses the modern call by its lack of a handshake; only then is it asked what it speaks."""
    effects = tmp_path / "effects"
    server = module("m3web.demo_servers.desk", M3_EFFECTS=str(effects))
    mail = {"to": "ada@example.org", "subject": "Hi", "body": "Hello"}
    outcome = await recorder.perform(server, "send_email", mail, saved=MODERN)
    assert isinstance(outcome, Completed)
    assert set(outcome.negotiated) == {"initialize"}
    assert len(effects_in(effects)) == 1


async def test_a_refusal_by_a_server_of_the_saved_generation_stays_a_refusal(
    tmp_path: Path, recorder: Recorder
) -> None:
    server = raw("modern", M3_EFFECTS=str(tmp_path / "seen"))
    outcome = await recorder.perform(server, "nonsense", saved=MODERN)
    assert isinstance(outcome, Failed)
    assert outcome.code == "refused_by_server"
    assert methods(tmp_path / "seen").count("tools/call") == 1


async def test_a_server_that_says_nothing_at_all_is_given_up_in_time() -> None:
    with pytest.raises(InspectionFailed) as caught:
        await inspect(raw("mute"), timeout=0.7)
    assert caught.value.failed.code == "timeout"
    assert not caught.value.failed.sent


async def test_an_older_server_that_ignores_the_probe_is_asked_by_handshake(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    outcome = await recorder.perform(raw("legacy-mute"), "bare")
    assert isinstance(outcome, Completed)
    assert set(outcome.negotiated) == {"initialize"}


async def test_what_a_program_prints_before_it_speaks_is_skipped() -> None:
    found = await inspect(raw("legacy", "noise"), timeout=PATIENCE)
    assert [tool.name for tool in found.tools] == ["x"]
