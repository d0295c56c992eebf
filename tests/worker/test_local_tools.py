"""Local tools: the host's own code, gated, journalled and asked about like any server's tool (A14)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs import control, db, lease, local_tools
from runs.errors import ModelValidationError, StateConflict
from runs.local_tools import LocalContext, local_tool
from runs.models import Round, Run, ToolCall
from runs.risk import Risk
from runs.round_rows import Decider
from runs.run_states import HumanInput
from tests.core.pages import text_of
from tests.worker.conftest import Desk, replaced, results

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
BOOK = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


@pytest.fixture
def ran() -> list[Any]:
    """What the tools of these tests did, in order."""
    return []


@pytest.fixture(autouse=True)
def tools(ran: list[Any]) -> Iterator[None]:
    @local_tool("book", description="Books seats.", input_schema=BOOK)
    async def book(context: LocalContext, seats: int) -> dict[str, int]:
        ran.append(("book", seats))
        return {"booked": seats}

    @local_tool("look_up", risk=Risk.READ)
    async def look_up(context: LocalContext) -> str:
        return "found"

    async def ask_twice(context: LocalContext) -> list[Any]:
        ran.append("started")
        answers = [await context.elicit(f"Name {number}?", NAME) for number in range(2)]
        ran.append("finished")
        return [answer.content for answer in answers]

    local_tool("ask_twice")(ask_twice)
    local_tool("ask_twice_again", replay=True)(ask_twice)

    @local_tool("breaks")
    async def breaks(context: LocalContext) -> None:
        raise KeyError("missing")

    @local_tool("odd")
    async def odd(context: LocalContext) -> Any:
        return {1, 2}

    @local_tool("works_on")
    async def works_on(context: LocalContext) -> None:
        await context.elicit("Name?", NAME)
        ran.append("at work")
        await asyncio.Event().wait()

    @local_tool("endless")
    async def endless(context: LocalContext) -> None:
        ran.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            ran.append("cancelled")

    yield
    for name in local_tools.names():
        local_tools.forget(name)


def call(name: str, **args: Any) -> list[dict[str, Any]]:
    return [{"call": f"local:{name}", "args": args, "as": "r"}, {"finish": "{{ r.status }}"}]


async def test_a_local_tool_gives_its_result_to_later_steps(desk_: Desk, ran: list[Any]) -> None:
    run = await desk_.start(call("book", seats=2), server="")
    assert (await desk_.finished(run)).output == "done"
    assert (await db.read(results, run))["steps.0"]["result"] == {"booked": 2}
    assert ran == [("book", 2)]


async def test_a_local_tool_asks_for_permission_and_its_card_says_what_it_is(
    desk_: Desk, ran: list[Any]
) -> None:
    run = await desk_.start(call("book", seats=3), server="", mode="approval")
    (round_,) = await desk_.pending(run, "approval")
    assert round_.context["description"] == "Books seats."
    assert round_.context["input_schema"] == BOOK
    assert not ran
    await desk_.accept(round_, decision="deny")
    assert (await desk_.finished(run)).output == "denied"
    assert not ran


async def test_the_risk_that_the_host_names_counts(desk_: Desk) -> None:
    run = await desk_.start(call("look_up"), server="", mode="approval")
    assert (await desk_.finished(run)).output == "done"
    assert await db.read(Round.objects.filter(run=run).count) == 0


async def test_arguments_that_do_not_fit_never_reach_the_tool(desk_: Desk, ran: list[Any]) -> None:
    run = await desk_.start(call("book", seats="two"), server="")
    assert (await desk_.finished(run)).output == "failed"
    assert "seats" in (await db.read(results, run))["steps.0"]["error"]
    assert not ran


@pytest.mark.parametrize(
    ("name", "words"), [("breaks", "KeyError"), ("odd", "not JSON"), ("nowhere", "not registered")]
)
async def test_a_tool_that_fails_fails_its_call_and_not_the_run(desk_: Desk, name: str, words: str) -> None:
    run = await desk_.start(call(name), server="")
    assert (await desk_.finished(run)).output == "failed"
    assert words in (await db.read(results, run))["steps.0"]["error"]


async def test_while_its_worker_lives_a_tool_that_asks_continues_in_place(
    desk_: Desk, ran: list[Any]
) -> None:
    """A22: nothing is executed again."""
    run = await desk_.start(call("ask_twice"), server="")
    for number in range(2):
        (round_,) = await desk_.pending(run)
        assert (round_.held, list(round_.requests)) == (True, ["elicitation"])
        await desk_.accept(round_, name=f"name {number}")
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == [{"name": "name 0"}, {"name": "name 1"}]
    assert ran == ["started", "finished"]


async def test_with_human_input_off_a_tool_that_asks_ends_the_run_clearly(
    desk_: Desk, ran: list[Any]
) -> None:
    run = await desk_.start(call("ask_twice"), server="", human_input=HumanInput.FAIL)
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "human_input_required")
    assert ran == ["started"]


async def asked_once_then_replaced(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], name: str
) -> tuple[Run, Desk]:
    run = await desk_.start(call(name), server="")
    (first,) = await desk_.pending(run)
    await desk_.accept(first, name="first answer")
    await desk_.eventually(
        lambda: Round.objects.filter(run=run, round_index=1).exists(), "the second prompt", run
    )
    return run, await replaced(desk_of, desk_, stop)


async def test_after_a_crash_a_replayable_tool_runs_again_with_the_answers_already_given(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], ran: list[Any]
) -> None:
    """A14, A4, C35: the pending round stays pending; the first prompt is answered from what is stored."""
    run, second = await asked_once_then_replaced(desk_, desk_of, stop, "ask_twice_again")
    await second.eventually(
        lambda: Round.objects.filter(run=run, held=False, status="pending").exists(), "the round to be parked"
    )
    (waiting,) = await second.pending(run)
    assert waiting.round_index == 1
    await second.accept(waiting, name="second answer")
    await second.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == [
        {"name": "first answer"},
        {"name": "second answer"},
    ]
    assert ran == ["started", "started", "finished"]
    assert await db.read(lambda: list(Round.objects.filter(run=run).values_list("status", flat=True))) == [
        "resolved",
        "resolved",
    ]


async def test_after_a_crash_a_tool_that_may_not_be_replayed_fails_honestly(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], ran: list[Any]
) -> None:
    run, second = await asked_once_then_replaced(desk_, desk_of, stop, "ask_twice")
    done = await second.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "managed_input_recovery_unavailable")
    assert ran == ["started"]


async def test_an_answer_for_a_tool_that_is_gone_is_refused_and_not_thrown_away(
    desk_: Desk, stop: Callable[[], Any]
) -> None:
    run = await desk_.start(call("ask_twice"), server="")
    (round_,) = await desk_.pending(run)
    await stop()
    await db.write(lease.take_over)
    with pytest.raises(StateConflict, match="gone"):
        await desk_.accept(round_, name="into the void")
    assert (await db.read(Round.objects.get, pk=round_.pk)).status == "pending"


async def test_what_was_at_work_with_an_answer_is_not_said_to_have_been_asking(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], ran: list[Any]
) -> None:
    run = await desk_.start(call("works_on"), server="")
    (round_,) = await desk_.pending(run)
    await desk_.accept(round_, name="Ada")
    await desk_.eventually(lambda: "at work" in ran, "the tool to work with the answer", run)
    done = await (await replaced(desk_of, desk_, stop)).finished(run)
    assert (done.error_code, "had a person's answer and was at work" in str(done.error)) == (
        "managed_input_recovery_unavailable",
        True,
    )


async def test_cancelling_the_run_cancels_the_tool(desk_: Desk, ran: list[Any]) -> None:
    run = await desk_.start(call("endless"), server="")
    await desk_.eventually(lambda: ran, "the tool to start", run)
    await db.write(control.cancel, run.pk, decider=Decider(user=None, via="api"))
    await desk_.eventually(lambda: "cancelled" in ran, "the tool to be cancelled", run)
    assert (await db.read(ToolCall.objects.get, step__run=run)).phase == "unknown"


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("book", None),
        ("two words", None),
        ("new", {"type": "string"}),
        ("new", {"type": "object", "required": 3}),
    ],
)
def test_a_wrong_registration_is_refused(name: str, schema: Any) -> None:
    async def tool(context: LocalContext) -> None: ...

    with pytest.raises(ModelValidationError):
        local_tool(name, input_schema=schema)(tool)
    assert local_tools.find("new") is None


def test_a_function_that_is_not_async_is_refused() -> None:
    with pytest.raises(ModelValidationError, match="async"):
        local_tool("plain")(lambda context: None)


async def test_the_example_of_the_docs_works_as_printed(desk_: Desk) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", text_of("docs/local-tools.md"), re.DOTALL)
    exec(example, {})
    run = await desk_.start(call("book_table", seats=2), server="")
    (round_,) = await desk_.pending(run)
    assert round_.requests["elicitation"]["message"] == "In whose name?"
    await desk_.accept(round_, name="Ines")
    await desk_.finished(run)
    given = (await db.read(results, run))["steps.0"]["result"]
    assert given == {"booked": True, "seats": 2, "name": "Ines"}
