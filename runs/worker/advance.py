"""`advance`: one coroutine that drives one run until it parks, or ends (design sections 5 and 6).

Whatever calls it (an engine, a test) only needs to do so at least once for every wake; the claim sorts out who works.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable

from django.db import OperationalError

from runs import clock, db, lease
from runs.errors import LeaseLost, SessionBusyError
from runs.gate import Gate
from runs.lease import Lease
from runs.models import Round, Step
from runs.races import AWAY
from runs.round_states import RoundStatus
from runs.worker import journal, passes
from runs.worker.calls import CallDriver
from runs.worker.following import Follower
from runs.worker.in_hand import Grip
from runs.worker.leftovers import end_leftovers
from runs.worker.passes import Parked
from runs.worker.prompts import Held
from runs.worker.view import View

log = logging.getLogger(__name__)


async def advance(
    run_id: int,
    *,
    owner: str,
    gate: Gate,
    signal: asyncio.Event | None = None,
    legs: asyncio.Semaphore | None = None,
    stopping: asyncio.Event | None = None,
    waits: Callable[[], None] | None = None,
) -> dt.datetime | None:
    """Drive the run as far as it goes. Returns when it wants to be woken if it parked for a sleep.

    `signal` is set by the engine when something about a run that is being driven has changed; `legs` bounds the
    work on servers of all runs of this process together. Once `stopping` is set, the run is given back as soon as
    none of its calls is at work. `waits` is called when a person is asked on a session that stays open here.

    Raises SessionBusyError while another worker drives the run; that one has to be told to look again.
    """
    signal = signal or asyncio.Event()
    legs = legs or asyncio.Semaphore(8)
    stopping = stopping or asyncio.Event()
    while True:
        begun = await _begin(run_id, owner)
        if begun is None:
            return None
        held, first = begun
        if isinstance(first, Parked):
            if first.newer_wake:
                continue
            return first.sleeps_until
        driver = _Driver(Held(held, gate, legs, Grip(held, stopping), waits), signal, stopping)
        try:
            newer_wake = await driver.drive(first)
        except LeaseLost:
            log.info("run %s was taken away while it was being driven", run_id)
            newer_wake = True
        except _Stopping:
            await db.write(lease.give_up, held)
            return None
        except asyncio.CancelledError:
            await db.write(lease.give_up, held)
            raise
        except OperationalError:
            raise  # the database's trouble, not the run's: the lease runs out and the sweep tries again
        except Exception as error:
            log.exception("run %s ends because of a defect", run_id)
            await db.write(journal.fail_current_turn, held, type(error).__name__)
            newer_wake = True
        if not newer_wake:
            return driver.sleeps_until


class _Stopping(Exception):
    """The worker stops, and this run can be left where it is."""


async def _begin(run_id: int, owner: str) -> tuple[Lease, View | Parked | None] | None:
    """Claim the run and make the first pass over it; None if it is not due. Raises SessionBusyError."""
    try:
        return await db.write(passes.begin, run_id, owner)
    except (SessionBusyError, OperationalError):
        raise
    except Exception:
        # Undone together with the claim. Claimed by itself, the run is driven into the defect again, and ended.
        held = await db.write(lease.claim, run_id, owner)
        return (held, None) if held is not None else None


class _Driver:
    def __init__(self, held: Held, signal: asyncio.Event, stopping: asyncio.Event) -> None:
        self.held, self.lease, self.signal, self.stopping = held, held.lease, signal, stopping
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.calls: dict[int, CallDriver] = {}
        self.sleeps_until: dt.datetime | None = None

    async def drive(self, first: View | None) -> bool:
        """Act on what the first pass left to do, then pass after pass. True if a newer wake came while the run was
        being given back."""
        taken = False
        try:
            async with self._renewing():
                if first is None or passes.left_behind(first):
                    await end_leftovers(self.lease)
                else:
                    await self._act(first)
                while True:
                    self.signal.clear()
                    found = await self._pass()
                    if isinstance(found, Parked):
                        self.sleeps_until = found.sleeps_until
                        return found.newer_wake
                    await self._act(found)
        except LeaseLost:
            taken = True
            raise
        finally:
            await self._stop_calls(taken)

    async def _pass(self) -> View | Parked:
        """Another pass. While calls are at work, a database that is away for less than a lease ends nothing."""
        while True:
            try:
                return await self.held.grip.renewing(passes.go_on, self.lease, busy=bool(self.tasks))
            except AWAY as error:
                if not self.tasks:
                    raise
                await self.held.grip.outlast(error, "what is under way")

    async def _act(self, view: View) -> None:
        """Do what no transaction can: tell servers, hand over answers, start calls and wait for them."""
        if unheard_of := view.unheard_of():
            await asyncio.gather(*[self._follower(step).forsake() for step in unheard_of])
            return
        self._hand_over_answers(view)
        if self.stopping.is_set():
            if len(self.tasks) <= len(self.held.waiting):
                raise _Stopping  # what waits for a person is left to the next worker
        else:
            self._start_calls(view)
        if self.tasks:
            await self._wait(view.rests_until())

    def _hand_over_answers(self, view: View) -> None:
        """Answers to prompts whose sessions are open here go straight to the waiting calls."""
        for round_ in view.rounds:
            answered = self.held.waiting.get(round_.pk)
            if answered and not answered.done() and round_.status == RoundStatus.RESPONSE_VALIDATED:
                answered.set_result(round_.responses or {})

    def _start_calls(self, view: View) -> None:
        for step in view.open_calls():
            if step.pk not in self.tasks:
                driver = self.calls[step.pk] = CallDriver(self.held, step.pk)
                self.tasks[step.pk] = asyncio.create_task(
                    driver.drive(), name=f"run {self.lease.run_id} step {step.seq}"
                )

    def _follower(self, step: Step) -> Follower:
        return Follower(self.lease, self.held.gate, self.held.legs, step.pk)

    async def _wait(self, until: dt.datetime | None) -> None:
        """Until a call ends or parks, something about the run changed, or a server's task wants a look. A call's
        error ends the pass."""
        left = None
        if until is not None:
            left = max(0.0, (until - await self.held.grip.read(clock.now)).total_seconds())
        changed = asyncio.create_task(self.signal.wait())
        try:
            await asyncio.wait(
                {changed, *self.tasks.values()}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
        for step_id, task in list(self.tasks.items()):
            if task.done():
                del self.tasks[step_id], self.calls[step_id]
                task.result()

    async def _stop_calls(self, taken: bool) -> None:
        """Stop what is under way. The protocol's cancellation goes out, sessions and children are closed, except for
        sessions that are left to the next worker; `taken` means that there is one already."""
        try:
            settling = [call.before_stop(taken=taken) for call in self.calls.values()]
            await asyncio.gather(*settling, return_exceptions=True)
        finally:
            for task in self.tasks.values():
                task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        if not taken:
            await asyncio.gather(*(call.after_stop() for call in self.calls.values()), return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _renewing(self) -> AsyncIterator[None]:
        """Renew the run's and its held rounds' leases every third of their time; a lost lease ends the driving."""
        renewal = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(lease.ttl().total_seconds() / 3)
            # Also the slow way to hear of answers whose signal was lost, and of a lease that is.
            self.signal.set()
            with contextlib.suppress(LeaseLost, OperationalError):  # the next one may find the database again
                await self.held.grip.renewing(_renew_leases, self.lease, list(self.held.waiting))


def _renew_leases(held: Lease, round_ids: list[str]) -> None:
    lease.fence(held)
    if round_ids:
        Round.objects.filter(pk__in=round_ids).update(lease_expires_at=clock.moment() + lease.ttl())
