"""What the API takes and shows; import from here. Types only: the rules are the services'."""

from runs.serializers.agents import AgentChange, AgentLine, AgentQuery, AgentShape, NewAgent
from runs.serializers.runs import (
    AccountEvent,
    EventQuery,
    EventShape,
    NewMessage,
    NewRun,
    RunLine,
    RunQuery,
    RunShape,
)
from runs.serializers.servers import (
    EntryShape,
    LookShape,
    NewServer,
    ServerChange,
    ServerQuery,
    ServerShape,
    ToolLine,
    ToolQuery,
    ToolShape,
    WordChange,
)
from runs.serializers.settings import SettingsChange, SettingsShape
from runs.serializers.tasks import NewTask, NewTaskRun, TaskChange, TaskQuery, TaskShape
from runs.serializers.users import NewUser, UserChange, UserShape
from runs.serializers.webhooks import (
    DeliveryShape,
    NewWebhook,
    NewWebhookShape,
    WebhookChange,
    WebhookShape,
)

__all__ = [
    "AccountEvent",
    "AgentChange",
    "AgentLine",
    "AgentQuery",
    "AgentShape",
    "DeliveryShape",
    "EntryShape",
    "EventQuery",
    "EventShape",
    "LookShape",
    "NewAgent",
    "NewMessage",
    "NewRun",
    "NewServer",
    "NewTask",
    "NewTaskRun",
    "NewUser",
    "NewWebhook",
    "NewWebhookShape",
    "RunLine",
    "RunQuery",
    "RunShape",
    "ServerChange",
    "ServerQuery",
    "ServerShape",
    "SettingsChange",
    "SettingsShape",
    "TaskChange",
    "TaskQuery",
    "TaskShape",
    "ToolLine",
    "ToolQuery",
    "ToolShape",
    "UserChange",
    "UserShape",
    "WebhookChange",
    "WebhookShape",
    "WordChange",
]
