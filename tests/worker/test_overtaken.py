"""A change that is made while a pause is being stored: its maker could not see the pause, nor the gate the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from approvals.gate import PolicyGate
from runs import db
from runs.access import actor_for
from runs.gate import Gate, Verdict
from runs.models import Role, Round, Run, ToolCall, Turn
from runs.risk import Risk
from runs.tool_standing import Words
from runs.worker import gating
from tests.people import person
from tests.services.holding import elsewhere
from tests.services.policy_helpers import grant_as_shown, rule
from tests.worker.conftest import Desk
from tests.worker.test_permission_holds import SEND, Effects, say

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="on SQLite writers take turns, so nobody is overtaken"
)


@pytest.fixture
def overtake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """`overtake(deed)`: right after the next word of the gate, before it is stored, somebody does `deed`."""

    def arrange(deed: Callable[[], Any]) -> None:
        decide, waiting = PolicyGate.decide, [deed]

        def overtaken(gate: PolicyGate, run: Run, turn: Turn, call: ToolCall) -> Verdict:
            verdict = decide(gate, run, turn, call)
            if waiting:
                elsewhere(waiting.pop())
            return verdict

        monkeypatch.setattr(PolicyGate, "decide", overtaken)

    return arrange


async def rounds_of(run: Run) -> list[tuple[str, str | None, str]]:
    rows = Round.objects.filter(run=run).order_by("created_at")
    return await db.read(lambda: list(rows.values_list("status", "outcome", "failure_code")))


@pytest.mark.parametrize(("risk", "output", "made"), [(Risk.BLOCKED, "denied", 0), (Risk.READ, "done", 1)])
async def test_a_tool_that_needs_nobody_by_then_asks_nobody(
    desk_: Desk, effects: Effects, overtake: Callable[..., None], risk: Risk, output: str, made: int
) -> None:
    overtake(lambda: say(desk_, Words(risk=risk)))
    run = await desk_.start(SEND, server="desk", mode="approval")
    assert ((await desk_.finished(run)).output or "").startswith(output)
    assert len(effects()) == made
    assert await rounds_of(run) == [("failed", "superseded", "overtaken")]


async def test_a_tool_of_another_risk_by_then_is_asked_about_with_that(
    desk_: Desk, overtake: Callable[..., None]
) -> None:
    overtake(lambda: say(desk_, Words(risk=Risk.MONEY)))
    run = await desk_.start(SEND, server="desk", mode="approval")

    def shows_money() -> Round | None:
        return Round.objects.filter(run=run, context__verdict__risk="money").pending().first()

    await desk_.eventually(shows_money, "a card that says money", run)
    assert len(await desk_.pending(run)) == 1


async def test_a_rule_that_covers_the_call_by_then_lets_it_go(
    desk_: Desk, effects: Effects, overtake: Callable[..., None]
) -> None:
    def grant() -> None:
        grant_as_shown(actor_for(person("ada", desk_.account, Role.ADMIN)), rule(desk_.account))

    overtake(grant)
    run = await desk_.start(SEND, server="desk", mode="approval")
    assert (await desk_.finished(run)).output == "done: "
    assert len(effects()) == 1


async def test_another_mode_by_then_concerns_the_next_call(
    desk_: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bool] = []
    look = gating.still_asks

    def overtaken(step_id: int, gate: Gate) -> bool:
        elsewhere(lambda: Run.objects.update(mode="plan"))
        said.append(look(step_id, gate))
        return said[-1]

    monkeypatch.setattr(gating, "still_asks", overtaken)
    run = await desk_.start(SEND, server="desk", mode="approval")
    await desk_.pending(run, "approval")
    await desk_.eventually(lambda: said, "the second look")
    assert said == [True]
