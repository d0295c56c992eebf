"""What the API takes and shows; import from here. Types only: the rules are the services'."""

from runs.serializers.agents import AgentChange, AgentLine, AgentQuery, AgentShape, NewAgent
from runs.serializers.runs import EventShape, NewMessage, NewRun, RunLine, RunQuery, RunShape
from runs.serializers.settings import SettingsChange, SettingsShape
from runs.serializers.tasks import NewTask, NewTaskRun, TaskChange, TaskQuery, TaskShape
from runs.serializers.users import NewUser, UserChange, UserShape

__all__ = [
    "AgentChange",
    "AgentLine",
    "AgentQuery",
    "AgentShape",
    "EventShape",
    "NewAgent",
    "NewMessage",
    "NewRun",
    "NewTask",
    "NewTaskRun",
    "NewUser",
    "RunLine",
    "RunQuery",
    "RunShape",
    "SettingsChange",
    "SettingsShape",
    "TaskChange",
    "TaskQuery",
    "TaskShape",
    "UserChange",
    "UserShape",
]
