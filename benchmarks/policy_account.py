"""Decisions of the gate in accounts with few and with many rules, taken in a process of its own because settings are
read once: `M3_DATA_DIR=... python -m benchmarks.policy_account SAMPLES RULES` prints the milliseconds as JSON.

Every account has ten rules, one of which allows the call. The large ones have RULES more, in the shapes that could make
a match dear: about other tools, about the same tool for other end users, about the same tool with exactly other
arguments. A last one has as many rules as may have to be tried on each call.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

STEPS = 20
"""Calls of the run whose steps are timed."""

ARGUMENTS = {"to": "ann@example.com", "subject": "Weekly update", "amount": 20}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    import django

    django.setup()
    samples, rules = int(sys.argv[1]), int(sys.argv[2])
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    accounts = [_account(name, shape) for name, shape in _shapes(rules).items()]
    print(json.dumps({**_sample(accounts, samples), **_steps(accounts[1], samples)}))


def _shapes(rules: int) -> dict[str, dict[str, Any]]:
    from approvals.rule_checks import MAX_TESTED

    return {
        "few": {},
        "other_tools": {"tools": rules},
        "other_users": {"users": rules},
        "other_arguments": {"exact": rules},
        "tried": {"tools": rules, "tried": MAX_TESTED},
    }


def _account(name: str, shape: dict[str, int]) -> Any:
    """A run in an account of its own, with its rules; the decisions are on a call of this run."""
    from approvals.condition_shape import condition_digest, match_key, stored_condition
    from approvals.conditions import ArgumentTest, Condition, exactly
    from approvals.models import Policy
    from runs.control import Submission, create_run
    from runs.models import Account, Agent, EndUser
    from runs.run_states import HumanInput

    account = Account.objects.create(name=name, slug=name)
    calls = [{"call": "local:bench_nothing", "args": ARGUMENTS}] * STEPS
    agent = Agent.objects.create(
        account=account, name=name, definition={"steps": [*calls, {"finish": "Done."}]}
    )
    users = [EndUser(account=account, user_id=f"user_{n}") for n in range(shape.get("users", 0))]
    EndUser.objects.bulk_create(users, batch_size=500)

    def rule(tool: str, condition: Condition = (), user: EndUser | None = None) -> Policy:
        return Policy(
            account=account,
            effect="allow",
            scope="user" if user else "account",
            end_user=user,
            target_server="local",
            target_tool=tool,
            condition=stored_condition(condition),
            condition_digest=condition_digest(condition),
            match_key=match_key(condition),
            source="api",
        )

    rules = [rule(f"little_{n}") for n in range(9)] + [rule("bench_nothing")]
    rules += [rule(f"other_{n}") for n in range(shape.get("tools", 0))]
    rules += [rule("bench_nothing", user=user) for user in users]
    rules += [rule("bench_nothing", exactly({"amount": n})) for n in range(shape.get("exact", 0))]
    rules += [
        rule("bench_nothing", (ArgumentTest(path=("amount",), value=-1 - n),))
        for n in range(shape.get("tried", 0))
    ]
    Policy.objects.bulk_create(rules, batch_size=500)
    return create_run(agent, Submission(message="go", mode="approval", human_input=HumanInput.MANAGED))


def _sample(runs: list[Any], samples: int) -> dict[str, list[float]]:
    """Milliseconds of each decision, account after account and round after round, so that noise meets all alike."""
    calls = {run.account.slug: (run, run.turns.get(), _call(run)) for run in runs}
    for run, turn, call in calls.values():
        _decide(run, turn, call)  # fills the caches that any traffic fills
    measured: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(samples):
        for name, (run, turn, call) in calls.items():
            measured[name].append(_decide(run, turn, call))
    return measured


def _call(run: Any) -> Any:
    from runs.models import Step, ToolCall

    return ToolCall(
        step=Step(run=run), server_name="local", operation="tool", name="bench_nothing", asked=ARGUMENTS
    )


def _decide(run: Any, turn: Any, call: Any) -> float:
    from approvals.gate import evaluate

    started = time.perf_counter()
    decision = evaluate(run, turn, call)
    took = (time.perf_counter() - started) * 1000
    if decision.effect != "allow":
        raise RuntimeError(f"the call should be allowed: {decision.reason}")
    return took


def _steps(run: Any, samples: int) -> dict[str, list[float]]:
    """A real worker drives runs of a local tool that does nothing: milliseconds of a step, and of the gate in it."""
    from approvals.gate import PolicyGate
    from runs import db, local_tools
    from runs.control import Submission, create_run
    from runs.models import Run
    from runs.run_states import HumanInput
    from runs.worker.advance import advance

    @local_tools.local_tool("bench_nothing")
    async def nothing(_context: Any, **_arguments: Any) -> None:
        """Does nothing, so that a step is all ours."""

    spent: list[float] = []

    class TimedGate(PolicyGate):
        def decide(self, *args: Any) -> Any:
            return self._timed(super().decide, *args)

        def recheck(self, *args: Any) -> Any:
            return self._timed(super().recheck, *args)

        def _timed(self, ask: Any, *args: Any) -> Any:
            started = time.perf_counter()
            try:
                return ask(*args)
            finally:
                spent.append((time.perf_counter() - started) * 1000)

    steps, gates = [], []
    for _ in range(max(1, samples // (4 * STEPS))):
        started_run = create_run(
            run.agent, Submission(message="go", mode="approval", human_input=HumanInput.MANAGED)
        )
        spent.clear()
        started = time.perf_counter()
        asyncio.run(advance(started_run.pk, owner="benchmark", gate=TimedGate()))
        steps.append((time.perf_counter() - started) * 1000 / STEPS)
        gates.append(sum(spent) / STEPS)
        if Run.objects.get(pk=started_run.pk).outcome != "completed":
            raise RuntimeError("the run should have been completed")
    db.close_threads()
    return {"step": steps, "gate_of_step": gates}


if __name__ == "__main__":
    main()
