"""SIGKILL a real worker at every point of a call, against every kind of server at once.

After each kill a second worker takes over, a person answers what is asked, and the servers say how often they acted.
The table is that of the contract, read by columns: no answer is lost, nothing is done twice, and what nobody can know
is put to a person (`unknown`) or ends the run with a code of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from django.db import connection

from tests.worker.kill_subjects import HttpServers, http  # noqa: F401  (a fixture)
from tests.worker.killing import Stage, Truth, stage  # noqa: F401  (a fixture)

pytestmark = pytest.mark.node

once = Truth("done", acted=1, asked=1)
twice = Truth("done", acted=2, asked=1)  # only where somebody has said that the call may be made again
asks0 = Truth("unknown", acted=0, asked=0)  # a person is asked what became of a call: it never left, ...
asks1 = Truth("unknown", acted=1, asked=0)  # ... it did, and its reply or its question is lost, ...
unsent = Truth("unknown", acted=0, asked=1)  # ... the answer never left, ...
unsaid = Truth("unknown", acted=1, asked=1)  # ... or it did, and the reply is lost
lost = Truth("managed_input_recovery_unavailable", acted=0, asked=1)
lost1 = replace(lost, acted=1)  # the answer was on its way; the error says that nobody can know more

COLUMNS = {
    "modern": ("modern stdio", "modern http"),
    "kept": ("legacy stdio", "legacy http", "everything stdio", "everything http"),
    "no events": ("legacy http, no events",),
    "task": ("tasks", "fastmcp-tasks"),
    "local": ("local",),
    "replay": ("local, replay",),
}
"""A session of the older generation can be gone on with (`kept`) under a keeper, or where its server keeps events."""

Row = tuple[Truth | None, ...]
HELD: dict[str, Row] = {
    # the worker is killed    modern  kept    no events  task   local   replay
    "before sent": (          once,   once,   once,      once,  once,   once),
    "after sent": (           asks0,  asks0,  asks0,     asks0, asks0,  once),
    "after session": (        None,   asks0,  asks0,     None,  None,   None),
    "before task": (          None,   None,   None,      asks1, None,   None),
    "before question": (      asks0,  once,   asks1,     once,  asks0,  once),
    "before answer": (        once,   once,   unsaid,    once,  lost,   once),
    "after answer": (         once,   once,   unsaid,    once,  lost,   once),
    "after retry": (          unsent, None,   None,      None,  None,   None),
    "before result": (        unsaid, once,   unsaid,    once,  lost1,  twice),
    "after result": (         once,   once,   once,      once,  once,   once),
}  # fmt: skip
"""Moments as `held_moments` knows them: `before` is right before the transaction, `after` right after its commit."""

WAITING: Row = (once, once, unsaid, once, lost, once)

ended = Truth("done", acted=1, asked=0)
AT_WORK: Row = (asks1, ended, asks1, ended, asks1, replace(ended, acted=2))

ON_POSTGRES = {"before sent", "after answer", "before result"}
"""The points that are taken there too, where leases alone say who works."""


@pytest.fixture(scope="module", autouse=True)
def all_servers(http: HttpServers) -> None:  # noqa: F811
    http.start(*http.ports)


def by_subject(row: Row) -> dict[str, Truth]:
    columns = zip(COLUMNS.values(), row, strict=True)
    return {name: truth for names, truth in columns if truth is not None for name in names}


def expected(row: Row) -> dict[str, Truth]:
    """The row by subject, of calls that ask."""
    truths = by_subject(row)
    peer = truths.get("fastmcp-tasks")
    if peer is not None:  # it asks for one thing after the other, and acts when it has both
        truths["fastmcp-tasks"] = replace(peer, asked=2 * peer.asked, acted=min(peer.acted, peer.asked))
    return truths


def points() -> list[str]:
    return [point for point in HELD if connection.vendor == "sqlite" or point in ON_POSTGRES]


@pytest.mark.parametrize("point", points())
async def test_killed_at_a_moment_of_the_call(stage: Stage, point: str) -> None:  # noqa: F811
    wanted = expected(HELD[point])
    stage.only(wanted)
    first = stage.worker(hold=point)
    await stage.ask()
    await stage.all_held()
    first.kill()
    stage.worker()
    assert await stage.truths() == wanted
    await stage.settle_unknown()
    assert stage.counts() == {name: truth.acted for name, truth in wanted.items()}


async def test_killed_while_a_person_thinks(stage: Stage) -> None:  # noqa: F811
    first = stage.worker()
    await stage.ask()
    await stage.all_asked()
    first.kill()
    stage.worker()
    await stage.all_taken_over(first)
    assert await stage.truths() == expected(WAITING)


async def test_killed_while_a_person_thinks_and_answered_while_nobody_works(stage: Stage) -> None:  # noqa: F811
    first = stage.worker()
    await stage.ask()
    await stage.all_asked()
    first.kill()
    await stage.answer_all()
    stage.worker()
    assert await stage.truths() == expected(WAITING)


async def test_killed_while_the_servers_are_at_work(stage: Stage) -> None:  # noqa: F811
    first = stage.worker(hold="before result")
    await stage.work()
    first.kill()
    stage.worker()
    await asyncio.to_thread(stage.let_finish)
    assert await stage.truths(at_work=True) == by_subject(AT_WORK)
    await stage.settle_unknown()
