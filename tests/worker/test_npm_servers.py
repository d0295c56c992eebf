"""Runs on servers that nobody here wrote: a real worker, and each answer of a person as those servers received it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs import db
from runs.binding import identity_of
from runs.errors import ManagedInputValidationError
from runs.mcp_client import HttpBinding, StdioBinding
from runs.models import Round, Run, Server, ToolCall
from tests.npm_servers.conftest import (  # noqa: F401  (fixtures)
    everything_over_http,
    everything_over_stdio,
    filesystem,
    folder,
)
from tests.npm_servers.test_everything_prompts import ADDRESS, EVERY_FIELD
from tests.worker.conftest import Desk, results

pytestmark = pytest.mark.node

FORM, URL = "everything:trigger-elicitation-request", "everything:trigger-url-elicitation"


@pytest.fixture
def stdio_entry(settings: LazySettings) -> Callable[[str, StdioBinding], dict[str, Any]]:
    """Put a program on the host's allow-list; gives the fields of a server that uses it."""

    def allow(name: str, binding: StdioBinding) -> dict[str, Any]:
        entry = {"command": binding.command, "args": list(binding.args)}
        settings.M3 = dataclasses.replace(
            settings.M3, stdio_servers={**settings.M3.stdio_servers, name: entry}
        )
        return {"transport": "stdio", "entry": name}

    return allow


async def add(desk_: Desk, name: str, *, trusted: bool, **fields: Any) -> None:
    def save() -> None:
        server = Server(account=desk_.account, name=name, trusted=trusted, **fields)
        server.identity = identity_of(server)
        server.save()

    await db.write(save)


@pytest.fixture(params=["stdio", "http"])
def everything(
    request: pytest.FixtureRequest, stdio_entry: Callable[[str, StdioBinding], dict[str, Any]]
) -> dict[str, Any]:
    """The fields of server-everything, once over each transport."""
    binding: StdioBinding | HttpBinding = request.getfixturevalue(f"everything_over_{request.param}")
    if isinstance(binding, HttpBinding):
        return {"transport": "http", "url": binding.url}
    return stdio_entry("everything", binding)


async def texts_of(desk_: Desk, run: Run, count: int) -> list[str]:
    """What the first `count` calls returned, once the run has ended well."""
    assert (await desk_.finished(run)).outcome == "completed"
    found = await db.read(results, run)
    return [found[f"steps.{n}"]["result"] for n in range(count)]


def received(text: str) -> Any:
    """The answer as server-everything prints it at the end of its result."""
    return json.loads(text.partition("Raw result: ")[2])


async def answer_three_times(desk_: Desk, run: Run, content: dict[str, Any] | None) -> list[Round]:
    """Accept (with `content`, a form's), decline and put off, one after the other; gives the rounds."""
    accepted = {"action": "accept"} if content is None else {"action": "accept", "content": content}
    rounds = []
    for response in (accepted, {"action": "decline"}, {"action": "cancel"}):
        (round_,) = await desk_.pending(run, "elicitation")
        assert round_.held, "the server's own session is kept open while it waits"
        rounds.append(round_)
        await desk_.answer(round_, {"elicitation": response})
    return rounds


async def test_a_form_accepted_in_full_declined_or_put_off_reaches_the_server_as_it_was_answered(
    desk_: Desk, everything: dict[str, Any]
) -> None:
    await add(desk_, "everything", trusted=True, **everything)
    run = await desk_.start(
        [{"call": FORM, "args": {}, "as": f"r{n}"} for n in range(3)], server="everything"
    )
    first, *_ = await answer_three_times(desk_, run, EVERY_FIELD)
    accepted, declined, put_off = await texts_of(desk_, run, 3)

    asked = first.requests["elicitation"]
    assert asked["message"] == "Please provide inputs for the following fields:"
    assert set(asked["requested_schema"]["properties"]) == set(EVERY_FIELD)
    assert received(accepted) == {"action": "accept", "content": EVERY_FIELD}
    assert "- Birthdate: 1815-12-10" in accepted
    assert received(declined) == {"action": "decline"}
    assert "User declined to provide" in declined
    assert received(put_off) == {"action": "cancel"}

    calls = await db.read(lambda: list(ToolCall.objects.filter(step__run=run)))
    assert [(call.phase, call.attempts) for call in calls] == [("done", 1)] * 3
    rounds = await db.read(lambda: list(Round.objects.filter(run=run).order_by("created_at")))
    assert [round_.status for round_ in rounds] == ["resolved"] * 3


async def test_consent_to_a_page_or_its_refusal_reaches_the_server_with_the_elicitations_id(
    desk_: Desk, everything: dict[str, Any]
) -> None:
    await add(desk_, "everything", trusted=True, **everything)
    step = {"call": URL, "args": ADDRESS}
    run = await desk_.start([{**step, "as": f"r{n}"} for n in range(3)], server="everything")
    rounds = await answer_three_times(desk_, run, None)
    accepted, declined, put_off = await texts_of(desk_, run, 3)

    for round_ in rounds:
        asked = round_.requests["elicitation"]
        shown = {key: asked[key] for key in ("mode", "url", "message", "elicitation_id")}
        assert shown == {
            "mode": "url",
            "url": ADDRESS["url"],
            "message": ADDRESS["message"],
            "elicitation_id": "e-7",
        }
    assert "User completed the URL elicitation flow" in accepted
    assert [received(each) for each in (accepted, declined, put_off)] == [
        {"action": "accept"},
        {"action": "decline"},
        {"action": "cancel"},
    ]


async def test_an_answer_that_breaks_the_servers_schema_never_reaches_it_and_the_round_stays_open(
    desk_: Desk,
    everything_over_http: HttpBinding,  # noqa: F811
) -> None:
    await add(desk_, "everything", trusted=True, transport="http", url=everything_over_http.url)
    run = await desk_.start([{"call": FORM, "args": {}, "as": "r"}], server="everything")
    (round_,) = await desk_.pending(run, "elicitation")
    with pytest.raises(ManagedInputValidationError):
        await desk_.accept(round_, **{**EVERY_FIELD, "integer": 101})
    with pytest.raises(ManagedInputValidationError):
        await desk_.accept(round_, check=True)
    (still,) = await desk_.pending(run, "elicitation")
    assert still.pk == round_.pk
    await desk_.accept(still, name="Ada Lovelace")
    (result,) = await texts_of(desk_, run, 1)
    assert received(result) == {"action": "accept", "content": {"name": "Ada Lovelace"}}


async def test_a_page_that_must_be_opened_before_the_call_parks_it_and_refusing_the_page_ends_it(
    desk_: Desk,
    everything_over_http: HttpBinding,  # noqa: F811
) -> None:
    """Its error path (-32042). It forgets with the session that a page was opened, so no agreement satisfies it."""
    await add(desk_, "everything", trusted=True, transport="http", url=everything_over_http.url)
    step = {"call": URL, "args": {**ADDRESS, "errorPath": True}, "as": "r"}
    run = await desk_.start([step, {"finish": "{{ r.status }}: {{ r.error }}"}], server="everything")
    for action in ("accept", "decline"):
        (round_,) = await desk_.pending(run, "elicitation")
        assert not round_.held, "the call is over; nothing is open while the person decides"
        (key,) = round_.requests
        assert round_.requests[key]["url"] == "https://modelcontextprotocol.io"
        await desk_.answer(round_, {key: {"action": action}})
    done = await desk_.finished(run)
    assert done.output == "failed: A person did not agree to open the page that the server needs."


# --- server-filesystem: what may be done without asking ---------------------------------------------------

Files = Callable[..., Awaitable[None]]


@pytest.fixture
def files(
    desk_: Desk,
    filesystem: StdioBinding,  # noqa: F811
    stdio_entry: Callable[[str, StdioBinding], dict[str, Any]],
) -> Files:
    """Add server-filesystem, trusted or not, under the name files."""

    async def register(*, trusted: bool) -> None:
        await add(desk_, "files", trusted=trusted, **stdio_entry("files", filesystem))

    return register


def read_then_write(folder: Path) -> list[dict[str, Any]]:  # noqa: F811
    """Read in.txt, then write what it says to out.txt."""
    return [
        {"call": "files:read_text_file", "args": {"path": str(folder / "in.txt")}, "as": "r"},
        {
            "call": "files:write_file",
            "args": {"path": str(folder / "out.txt"), "content": "{{ r.result.content }}!"},
            "as": "w",
        },
        {"finish": "{{ r.status }} {{ w.status }}"},
    ]


async def test_a_trusted_server_reads_unasked_and_writes_only_what_a_person_saw_and_allowed(
    desk_: Desk,
    files: Files,
    folder: Path,  # noqa: F811
) -> None:
    (folder / "in.txt").write_text("Grüße <b>aus</b> Pune")
    await files(trusted=True)
    run = await desk_.start(read_then_write(folder), server="files", mode="approval")
    (round_,) = await desk_.pending(run, "approval")
    assert round_.context["tool"] == "files:write_file"
    assert round_.context["arguments"] == {
        "path": str(folder / "out.txt"),
        "content": "Grüße <b>aus</b> Pune!",
    }
    assert round_.context["verdict"]["risk"] == "destroy"
    assert not (folder / "out.txt").exists()
    assert await db.read(Round.objects.filter(run=run).count) == 1, "the read was not asked about"

    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done done"
    assert (folder / "out.txt").read_text() == "Grüße <b>aus</b> Pune!"


async def test_a_denied_write_leaves_no_file_and_an_edited_one_is_written_as_edited(
    desk_: Desk,
    files: Files,
    folder: Path,  # noqa: F811
) -> None:
    (folder / "in.txt").write_text("secret")
    await files(trusted=True)
    denied = await desk_.start(read_then_write(folder), server="files", mode="approval")
    (round_,) = await desk_.pending(denied, "approval")
    await desk_.accept(round_, decision="deny", feedback="Not this one.")
    assert (await desk_.finished(denied)).output == "done denied"
    assert {path.name for path in folder.iterdir()} == {"in.txt"}

    edited = await desk_.start(read_then_write(folder), server="files", mode="approval")
    (round_,) = await desk_.pending(edited, "approval")
    arguments = {**round_.context["arguments"], "content": "public"}
    await desk_.accept(round_, decision="allow", arguments=arguments)
    assert (await desk_.finished(edited)).output == "done done"
    assert (folder / "out.txt").read_text() == "public"


async def test_a_server_that_nobody_vouches_for_is_asked_about_before_it_even_reads(
    desk_: Desk,
    files: Files,
    folder: Path,  # noqa: F811
) -> None:
    (folder / "in.txt").write_text("text")
    await files(trusted=False)
    run = await desk_.start(read_then_write(folder), server="files", mode="approval")
    for tool in ("files:read_text_file", "files:write_file"):
        (round_,) = await desk_.pending(run, "approval")
        assert (round_.context["tool"], round_.context["verdict"]["code"]) == (tool, "no_rule")
        assert not (folder / "out.txt").exists()
        await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done done"
    assert (folder / "out.txt").read_text() == "text!"
