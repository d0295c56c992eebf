"""Lines are cut and machines die by chance, one at a time, while people start runs and answer what is asked."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

import pytest

from tests.fleet.machines import LEASE, Fleet, Started
from tests.fleet.network import Silence
from tests.fleet.people import People
from tests.requirements import repeats

KINDS = (("asks", "autonomous"), ("labels", "approval"), ("books", "autonomous"))
"""A question of the agent, an approval, a server's form; each followed by one side effect."""

EFFECT = {"asks": "label", "labels": "label", "books": "book"}
RUNS = min(repeats(), 40)
BLOWS = min(repeats() // 5, 6)
pytestmark = pytest.mark.timeout(900)

ENDS_WITHIN = 300.0
"""Seconds for all that is left when everything is whole again, on a busy machine."""


def blows(fleet: Fleet, chance: random.Random) -> tuple[str, Callable[[], object]]:
    """One misfortune of one machine."""
    machine = chance.choice((fleet.a, fleet.b))
    worker = machine.processes["worker"]
    possible: dict[str, Callable[[], object]] = {
        "line half-open": lambda: fleet.network.cut(machine.name, Silence.HALF_OPEN),
        "line unplugged": lambda: fleet.network.cut(machine.name, Silence.UNPLUGGED),
        "no Redis": lambda: fleet.network.cut(machine.name, to=fleet.redis),
        "worker frozen": lambda: worker.send_signal(signal.SIGSTOP),
        "worker killed": worker.kill,
        "both killed": machine.kill,
        "switched off": machine.power_off,
    }
    name = chance.choice(sorted(possible))
    return f"{machine.name}: {name}", possible[name]


def test_nothing_is_lost_and_nothing_happens_twice_without_permission(fleet: Fleet) -> None:
    chance = random.Random(6)
    people = People(fleet, chance)
    started: list[tuple[str, Started]] = []
    happened = []
    ((before,),) = fleet.query("select count(*) from runs_run")

    for number in range(BLOWS):
        for _ in range(RUNS * (number + 1) // BLOWS - len(started)):
            agent, mode = chance.choice(KINDS)
            started.append((agent, people.start(agent, mode)))
        name, strike = blows(fleet, chance)
        happened.append(name)
        strike()
        people.answer_for(chance.uniform(0, 2 * LEASE))
        fleet.make_whole()

    ids = [each.run for _, each in started]
    open_ = "select count(*) from runs_run where id = any(%s) and status <> 'finished'"
    people.answer_until(lambda: fleet.query(open_, ids) == [(0,)], "every run to end", ENDS_WITHIN)

    assert fleet.query("select count(*) from runs_run") == [(before + RUNS,)], "each start counts once"
    assert {each.ended() for _, each in started} == {("completed", None)}, happened
    for agent, each in started:
        permitted = 1 + permissions(fleet, each)
        assert 1 <= fleet.effects(EFFECT[agent], each.tag) <= permitted, (happened, each.story())
    assert answered_twice(fleet, ids) == []
    assert "every history is as it was written" in fleet.a.run("manage.py", "audit", "verify")


def permissions(fleet: Fleet, started: Started) -> int:
    """How often a person has said that the call may be made again."""
    sql = "select count(*) from runs_round where run_id = %s and kind = 'outcome' and outcome = 'answered'"
    return int(fleet.query(sql, started.run)[0][0])


def answered_twice(fleet: Fleet, runs: list[int]) -> list[tuple[object, ...]]:
    """The pauses whose answer is recorded more than once."""
    answer = "select payload ->> 'round_id' as pause from runs_event where run_id = any(%s) and type like '%%.response'"
    return fleet.query(f"select pause, count(*) from ({answer}) answer group by 1 having count(*) > 1", runs)
