"""An example of each body, as it stands in the OpenAPI description; tests check that each is accepted."""

from __future__ import annotations

from typing import Any, Final

EXAMPLES: Final[dict[str, list[dict[str, Any]]]] = {
    "NewAgent": [
        {
            "name": "Courier",
            "servers": ["shipping"],
            "default_permission_mode": "approval",
            "definition": {"steps": [{"call": "shipping:quote", "args": {"weight": 2}, "as": "quote"}]},
        }
    ],
    "AgentChange": [{"status": "disabled"}],
    "NewRun": [
        {
            "agent_id": 1,
            "message": "draft and send a weekly customer update",
            "permission_mode": "approval",
            "user_id": "cust_123",
            "metadata": {"ticket": "T-81"},
        }
    ],
    "NewMessage": [{"message": "also break it down by region"}],
    "NewMode": [{"permission_mode": "autonomous"}],
    "Decision": [{"request_id": "2f1c0a7e5b6d4c3f9e8a7b6c5d4e3f2a", "decision": "allow", "remember": False}],
    "QuestionAnswers": [{"answers": {"Which segment?": "enterprise"}}],
    "NewPolicy": [{"tool": "desk:send_email", "user_id": "cust_123"}],
    "Answer": [
        {
            "responses": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
            "idempotency_key": "ticket-81-allow",
            "remember": {"scope": "account", "days": 30},
        }
    ],
    "Draft": [{"key": "q0", "response": {"action": "accept", "content": {"selected": [0]}}}],
    "NewServer": [
        {
            "name": "crm",
            "url": "https://crm.example.com/mcp",
            "headers": {"Authorization": "Bearer …"},
        },
        {"name": "shipping", "entry": "shipping"},
    ],
    "ServerChange": [{"trusted": True}],
    "WordChange": [{"risk": "money"}, {"risk": "blocked"}],
    "NewTask": [{"agent_id": 1, "name": "Weekly", "instructions": "draft and send a weekly customer update"}],
    "TaskChange": [{"permission_mode": "approval"}],
    "NewTaskRun": [{"user_id": "cust_123"}],
    "NewUser": [{"user_id": "cust_123", "name": "Northwind", "email": "ann@northwind.example"}],
    "UserChange": [{"company": "Northwind"}],
    "NewWebhook": [{"url": "https://app.example.com/hooks/m3", "events": ["run.awaiting_input"]}],
    "WebhookChange": [{"rotate_secret": True}],
    "SettingsChange": [{"require_end_user_id": True}],
}
"""By the name of the body."""
