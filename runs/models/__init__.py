"""The data model (design section 2); import models from here."""

from runs.models.account import Account, EndUser, Membership, Role, User
from runs.models.agent import Agent, Task
from runs.models.event import Event
from runs.models.host import LeftSession, WorkerHost
from runs.models.idempotency import IdempotencyKey
from runs.models.key import ApiKey
from runs.models.ledger import Ledger, LedgerEntry
from runs.models.round import UNRESOLVED, Round
from runs.models.run import LONG_AGO, Run, Step, ToolCall, Turn
from runs.models.secret_proof import SecretProof
from runs.models.seen import SeenAddress, SeenDefinition, ToolWord
from runs.models.server import Server, Tool, Transport
from runs.models.webhook import WebhookDelivery, WebhookEndpoint

__all__ = [
    "LONG_AGO",
    "UNRESOLVED",
    "Account",
    "Agent",
    "ApiKey",
    "EndUser",
    "Event",
    "IdempotencyKey",
    "Ledger",
    "LedgerEntry",
    "LeftSession",
    "Membership",
    "Role",
    "Round",
    "Run",
    "SecretProof",
    "SeenAddress",
    "SeenDefinition",
    "Server",
    "Step",
    "Task",
    "Tool",
    "ToolCall",
    "ToolWord",
    "Transport",
    "Turn",
    "User",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WorkerHost",
]
