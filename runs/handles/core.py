"""What a kit does, written once as coroutines of its own loop. The two faces, blocking and awaitable, only call it."""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs import db
from runs.errors import ManagedInputValidationError, ModelValidationError, OperationTimeout, StateConflict
from runs.handles import addresses, executions, submitting
from runs.handles.dispatch import Dispatcher
from runs.handles.loop import LoopThread
from runs.handles.specs import AgentSpec, Server, check_human_input, check_servers, check_texts
from runs.handles.stores import BaseStore, PrivateStore
from runs.handles.values import ExecutionResult, ExecutionState, PendingRound
from runs.idempotency import MAX_KEY
from runs.managed_input import ElicitationResponse, PendingElicitationRound, checks
from runs.managed_input.checks import payload_of
from runs.models import Turn
from runs.run_states import HumanInput

FIRST_LOOK, SLOWEST_LOOK = 0.02, 0.25
"""Seconds between two looks at an execution that is waited for; another process may drive it."""


_open: set[Core] = set()
"""Kits that nobody has closed yet."""


def _close_forgotten() -> None:
    for core in tuple(_open):
        core.close()


# A program may end without closing its kits. atexit would be too late: the pools of threads that a kit works with are
# ended before it, by a hook of this kind, and of these the one that was registered last runs first.
getattr(threading, "_register_atexit", atexit.register)(_close_forgotten)


@dataclass(frozen=True)
class Execution:
    """Which execution a handle is about, and whether it may ask people (C5)."""

    execution_id: str
    human_input: HumanInput


class Core:
    """One kit: its store, its loop, its dispatcher. Coroutine methods must run on `thread`."""

    def __init__(
        self, store: BaseStore | None, env: Mapping[str, str] | None, servers: Sequence[Server]
    ) -> None:
        if store is not None and not isinstance(store, BaseStore):
            raise ModelValidationError("store is a SQLiteExecutionStore, an ExecutionStore, or None.")
        check_servers(servers)
        if env is not None:
            check_texts("env", env)
        self._store = store if store is not None else PrivateStore()
        self._owns_store = store is None
        self._env = dict(os.environ if env is None else env)
        self._servers = tuple(servers)
        self._dispatcher = Dispatcher()
        self._starting: asyncio.Task[None] | None = None
        self._closed = False
        self._store.attach()
        self.thread = LoopThread(self._store.database)
        _open.add(self)

    # --- life -----------------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """The store is prepared and somebody drives its executions; raises what keeps that from being true."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)
        self._dispatcher.check()

    async def _start(self) -> None:
        await self._store.prepare()
        for server in self._servers:
            addresses.offer(server, self._env, self._dispatcher)
        self._dispatcher.start()

    def close(self) -> None:
        """Stop driving, wait for the loop to end, and let go of the store; from any thread but the loop's."""
        if self._closed:
            return
        self._closed = True
        _open.discard(self)
        try:
            self.thread.call(self._dispatcher.stop())
        finally:
            self.thread.close()
            self._store.detach()
            if self._owns_store:
                self._store.close()

    # --- submitting -----------------------------------------------------------------------------------------------

    async def submit(self, spec: AgentSpec, human_input: object) -> Execution:
        """Check and record a submission. Raises ModelValidationError for whatever is wrong with it."""
        if not isinstance(spec, AgentSpec):
            raise ModelValidationError("Only an AgentSpec can be submitted.")
        asked = HumanInput(check_human_input(human_input, spec))
        if asked is HumanInput.MANAGED and not self._store.persistent:
            raise ModelValidationError(
                'human_input="managed" needs a store that lasts: MCPTestKit(store=SQLiteExecutionStore(path)).'
            )
        await self.ready()
        self._check_local_tools(submitting.local_tools_of(spec))
        placement = submitting.Placement(
            account=self._store.account,
            addresses=[addresses.address(server, self._env, self._dispatcher) for server in spec.servers],
            human_input=asked,
        )
        return Execution(await db.write(submitting.submit, spec, placement), asked)

    async def find(self, execution_id: str) -> Execution:
        """An execution of the store, from this program or an earlier one.

        Raises NotFound, and ModelValidationError if it is unfinished and a server or local tool of it is not there.
        """
        await self.ready()
        turn = await db.read(executions.find, execution_id, self._store.account)
        if turn.outcome is None:
            await self._check_reachable(turn)
        return Execution(str(turn.pk), executions.human_input_of(turn))

    # --- one execution --------------------------------------------------------------------------------------------

    async def snapshot(self, execution: Execution) -> ExecutionState:
        await self.ready()
        return await db.read(executions.state, execution.execution_id)

    async def pending_elicitation(self, execution: Execution) -> PendingElicitationRound | None:
        if execution.human_input is not HumanInput.MANAGED:
            return None
        await self.ready()
        return await db.read(executions.pending_elicitation, execution.execution_id)

    async def pending_rounds(self, execution: Execution) -> tuple[PendingRound, ...]:
        if execution.human_input is not HumanInput.MANAGED:
            return ()
        await self.ready()
        return await db.read(executions.pending_rounds, execution.execution_id)

    async def respond(
        self,
        execution: Execution,
        round_id: str,
        responses: Mapping[str, ElicitationResponse],
        idempotency_key: str,
    ) -> None:
        executions.check_managed(execution.human_input)
        checks.check_texts(round_id=round_id, idempotency_key=idempotency_key)
        if len(idempotency_key) > MAX_KEY:
            raise ManagedInputValidationError(f"An idempotency_key has {MAX_KEY} characters at most.")
        payload = payload_of(responses)
        await self.ready()
        turn = await db.read(executions.find, execution.execution_id, self._store.account)
        if turn.outcome is None:
            await self._check_reachable(turn)
        try:
            settled = await db.write(
                executions.respond, execution.execution_id, round_id, payload, idempotency_key
            )
        except StateConflict as conflict:
            raise executions.late(conflict) from conflict
        executions.accepted(settled)

    async def result(self, execution: Execution, timeout: float | None) -> ExecutionResult:
        limit = _checked_timeout(timeout)
        clock = asyncio.get_running_loop().time
        until, pause = clock() + limit, FIRST_LOOK
        while True:
            await self.ready()
            found = await db.read(executions.result, execution.execution_id)
            if found is not None:
                return found
            left = until - clock()
            if left <= 0:
                raise OperationTimeout(
                    f"The execution has not ended within {limit:g} seconds. It goes on; ask for its result again."
                )
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, SLOWEST_LOOK)

    async def cancel(self, execution: Execution) -> None:
        await self.ready()
        await db.write(executions.cancel, execution.execution_id)

    async def delete(self, execution: Execution) -> None:
        await self.ready()
        await db.write(executions.delete, execution.execution_id)

    # --- what the process that drives has ---------------------------------------------------------------------------

    async def _check_reachable(self, turn: Turn) -> None:
        """An answer must not wake an execution that could then only fail."""
        entries, local_names = await db.read(submitting.needs, turn)
        self._check_local_tools(local_names)
        missing = sorted(entries - self._dispatcher.offers().entries.keys())
        if missing:
            raise ModelValidationError(
                f"The execution uses servers that nobody offers now ({', '.join(missing)}). "
                "Open the kit with them, MCPTestKit(store=..., servers=[...]), where the executions are driven."
            )

    def _check_local_tools(self, names: set[str]) -> None:
        missing = sorted(names - self._dispatcher.offers().local_tools) if names else []
        if missing:
            raise ModelValidationError(
                f"The process that drives the executions of this store has no local tool {', '.join(missing)}. "
                "Register it there, before the kit is opened."
            )


def _checked_timeout(timeout: object) -> float:
    if timeout is None:
        return math.inf
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ModelValidationError("timeout is a number of seconds above zero, or None to wait for ever.")
    try:
        return float(timeout)
    except OverflowError as error:
        raise ModelValidationError("timeout is too large; None waits for ever.") from error
