"""Run agents from a Python program: submit, wait, answer, cancel (docs/managed-input.md).

Importing this configures Django, unless the program runs inside one already.
"""

# ruff: noqa: E402 - Django must be configured before anything that has models is imported
from runs.handles import django_setup

django_setup.ensure()

from runs.errors import (
    ManagedInputConflict,
    ManagedInputError,
    ManagedInputRecoveryError,
    ManagedInputStateError,
    ManagedInputValidationError,
    ModelValidationError,
    NotFound,
    OperationTimeout,
    SessionBusyError,
    SessionClosedError,
    StateConflict,
)
from runs.handles.handle import AsyncExecutionHandle, ExecutionHandle
from runs.handles.kit import Agent, AsyncAgent, AsyncMCPTestKit, MCPTestKit
from runs.handles.specs import AgentSpec, HttpServer, HumanInput, PlannedElicitation, StdioServer
from runs.handles.stores import ExecutionStore, SQLiteExecutionStore
from runs.handles.values import (
    CallRecord,
    ExecutionOutcome,
    ExecutionResult,
    ExecutionState,
    ExecutionStatus,
    PendingRound,
)
from runs.managed_input import (
    ElicitationResponse,
    FormElicitationRequest,
    PendingElicitationRound,
    UrlElicitationRequest,
)
from runs.planned import schema_digest

__all__ = [
    "Agent",
    "AgentSpec",
    "AsyncAgent",
    "AsyncExecutionHandle",
    "AsyncMCPTestKit",
    "CallRecord",
    "ElicitationResponse",
    "ExecutionHandle",
    "ExecutionOutcome",
    "ExecutionResult",
    "ExecutionState",
    "ExecutionStatus",
    "ExecutionStore",
    "FormElicitationRequest",
    "HttpServer",
    "HumanInput",
    "MCPTestKit",
    "ManagedInputConflict",
    "ManagedInputError",
    "ManagedInputRecoveryError",
    "ManagedInputStateError",
    "ManagedInputValidationError",
    "ModelValidationError",
    "NotFound",
    "OperationTimeout",
    "PendingElicitationRound",
    "PendingRound",
    "PlannedElicitation",
    "SQLiteExecutionStore",
    "SessionBusyError",
    "SessionClosedError",
    "StateConflict",
    "StdioServer",
    "UrlElicitationRequest",
    "schema_digest",
]
