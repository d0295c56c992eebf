"""Handles: one execution, as a program reads, answers and ends it. Two faces of `runs.handles.core`."""

from __future__ import annotations

from collections.abc import Mapping

from runs.handles.core import Core, Execution
from runs.handles.values import ExecutionResult, ExecutionState, PendingRound
from runs.managed_input import ElicitationResponse, PendingElicitationRound


class _Handle:
    def __init__(self, core: Core, execution: Execution) -> None:
        self._core = core
        self._execution = execution

    @property
    def execution_id(self) -> str:
        """Keep it to have the handle again after a restart: `kit.execution(execution_id)`."""
        return self._execution.execution_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.execution_id}>"


class ExecutionHandle(_Handle):
    """One execution. Every method blocks until it is done."""

    def pending_elicitation(self) -> PendingElicitationRound | None:
        """What a server or local tool asks for now; None if nothing, and always None with `human_input="fail"`.

        Raises ManagedInputStateError if several are pending (C7): see `pending_rounds`.
        """
        return self._core.thread.call(self._core.pending_elicitation(self._execution))

    def pending_rounds(self) -> tuple[PendingRound, ...]:
        """Everything that waits for an answer, the oldest first: approvals, questions and plans too."""
        return self._core.thread.call(self._core.pending_rounds(self._execution))

    def respond_elicitation(
        self, round_id: str, responses: Mapping[str, ElicitationResponse], *, idempotency_key: str
    ) -> None:
        """Answer a pending round of any kind and let the execution go on. The same call again changes nothing.

        `responses` has exactly the keys of the round's requests. Keep `idempotency_key` with the answer, so that a
        retry after a lost acknowledgement uses both again.

        Raises ModelValidationError in an execution that asks nobody (C6) or whose servers nobody offers now;
        ManagedInputValidationError for ids, keys or content that do not fit, and the round stays pending (C12-C17,
        C24); ManagedInputConflict for another answer than the stored one (C21); ManagedInputStateError for a round
        that ended without an answer (C25).
        """
        work = self._core.respond(self._execution, round_id, responses, idempotency_key)
        self._core.thread.call(work)

    def snapshot(self) -> ExecutionState:
        """Where the execution is now."""
        return self._core.thread.call(self._core.snapshot(self._execution))

    def result(self, timeout: float | None = None) -> ExecutionResult:
        """Wait for the end, at most `timeout` seconds, for ever if None; every later call gives the same result.

        Raises OperationTimeout when the time is over, which leaves the execution as it is (C43), and
        ModelValidationError for a timeout that is not above zero.
        """
        return self._core.thread.call(self._core.result(self._execution, timeout))

    def cancel(self) -> None:
        """End the execution as cancelled, from any state (C41). One that has ended keeps its result."""
        self._core.thread.call(self._core.cancel(self._execution))

    def delete(self) -> None:
        """Remove a finished execution and its rounds (C38). Raises StateConflict while it is unfinished."""
        self._core.thread.call(self._core.delete(self._execution))


class AsyncExecutionHandle(_Handle):
    """`ExecutionHandle` for a program with a loop of its own; every method is awaited and raises the same."""

    async def pending_elicitation(self) -> PendingElicitationRound | None:
        """See `ExecutionHandle.pending_elicitation`."""
        return await self._core.thread.acall(self._core.pending_elicitation(self._execution))

    async def pending_rounds(self) -> tuple[PendingRound, ...]:
        """See `ExecutionHandle.pending_rounds`."""
        return await self._core.thread.acall(self._core.pending_rounds(self._execution))

    async def respond_elicitation(
        self, round_id: str, responses: Mapping[str, ElicitationResponse], *, idempotency_key: str
    ) -> None:
        """See `ExecutionHandle.respond_elicitation`."""
        work = self._core.respond(self._execution, round_id, responses, idempotency_key)
        await self._core.thread.acall(work)

    async def snapshot(self) -> ExecutionState:
        """See `ExecutionHandle.snapshot`."""
        return await self._core.thread.acall(self._core.snapshot(self._execution))

    async def result(self, timeout: float | None = None) -> ExecutionResult:
        """See `ExecutionHandle.result`."""
        return await self._core.thread.acall(self._core.result(self._execution, timeout))

    async def cancel(self) -> None:
        """See `ExecutionHandle.cancel`."""
        await self._core.thread.acall(self._core.cancel(self._execution))

    async def delete(self) -> None:
        """See `ExecutionHandle.delete`."""
        await self._core.thread.acall(self._core.delete(self._execution))
