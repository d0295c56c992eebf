"""Managed input: the rounds in which a run waits for people, as values, a store and its errors.

    store = DjangoManagedInputStore()              # the database of this installation
    store = SQLiteManagedInputStore("runs.sqlite")  # a file of its own

Programs that submit and answer runs use the handles; the store is for workers that hold rounds.
"""

from runs.errors import (
    ManagedInputConflict,
    ManagedInputError,
    ManagedInputRecoveryError,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from runs.managed_input.protocol import ManagedInputStore
from runs.managed_input.sqlite_file import SQLiteManagedInputStore
from runs.managed_input.store import DjangoManagedInputStore
from runs.managed_input.values import (
    ElicitationResponse,
    FormElicitationRequest,
    ManagedInputLease,
    ManagedInputRecord,
    ManagedInputStatus,
    PendingElicitationRound,
    UrlElicitationRequest,
)

__all__ = [
    "DjangoManagedInputStore",
    "ElicitationResponse",
    "FormElicitationRequest",
    "ManagedInputConflict",
    "ManagedInputError",
    "ManagedInputLease",
    "ManagedInputRecord",
    "ManagedInputRecoveryError",
    "ManagedInputStateError",
    "ManagedInputStatus",
    "ManagedInputStore",
    "ManagedInputValidationError",
    "PendingElicitationRound",
    "SQLiteManagedInputStore",
    "UrlElicitationRequest",
]
