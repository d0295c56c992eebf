"""The desk's tools as its clients see them."""

from __future__ import annotations

from typing import Any

_CUSTOMER_ID = {
    "type": "string",
    "title": "Customer",
    "pattern": "^C-[0-9]+$",
    "description": "For example C-101.",
}
_TIER = {"type": "string", "title": "Tier", "enum": ["basic", "silver", "gold"]}


def _tool(
    name: str,
    title: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    **hints: bool,
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {f"{hint}Hint": value for hint, value in hints.items()},
    }


TOOLS: list[dict[str, Any]] = [
    _tool(
        "list_customers",
        "List customers",
        "All customers with this week's orders and revenue, or those of one region.",
        {"region": {"type": "string", "title": "Region", "enum": ["North", "South", "West"]}},
        [],
        readOnly=True,
        destructive=False,
        idempotent=True,
        openWorld=False,
    ),
    _tool(
        "get_customer",
        "Look up a customer",
        "One customer with contact, tier, note and orders.",
        {"customer_id": _CUSTOMER_ID},
        ["customer_id"],
        readOnly=True,
        destructive=False,
        idempotent=True,
        openWorld=False,
    ),
    _tool(
        "send_email",
        "Send an e-mail",
        "Sends an e-mail at once. It cannot be taken back.",
        {
            "to": {"type": "string", "title": "To", "format": "email"},
            "subject": {"type": "string", "title": "Subject", "minLength": 1, "maxLength": 200},
            "body": {"type": "string", "title": "Text", "minLength": 1, "maxLength": 20000},
        },
        ["to", "subject", "body"],
        readOnly=False,
        destructive=False,
        idempotent=False,
        openWorld=True,
    ),
    _tool(
        "refund",
        "Refund an order",
        "Pays money back. Asks for the reason and the amount, then for the bank's consent.",
        {
            "order_id": {"type": "string", "title": "Order", "pattern": "^O-[0-9]+$"},
            "amount": {"type": "number", "title": "Amount", "exclusiveMinimum": 0},
            "currency": {"type": "string", "title": "Currency", "enum": ["EUR", "CHF"], "default": "EUR"},
            "reason": {"type": "string", "title": "Reason", "minLength": 1, "maxLength": 500},
        },
        ["order_id", "amount", "reason"],
        readOnly=False,
        destructive=True,
        idempotent=False,
        openWorld=True,
    ),
    _tool(
        "update_customer",
        "Change a customer",
        "Changes contact, e-mail, tier or note of a customer.",
        {
            "customer_id": _CUSTOMER_ID,
            "contact": {"type": "string", "title": "Contact", "maxLength": 80},
            "email": {"type": "string", "title": "E-mail", "format": "email"},
            "tier": _TIER,
            "note": {"type": "string", "title": "Note", "maxLength": 2000},
        },
        ["customer_id"],
        readOnly=False,
        destructive=False,
        idempotent=True,
        openWorld=False,
    ),
    _tool(
        "delete_customer",
        "Delete a customer",
        "Deletes a customer with all their data. It cannot be taken back.",
        {"customer_id": _CUSTOMER_ID},
        ["customer_id"],
        readOnly=False,
        destructive=True,
        idempotent=True,
        openWorld=False,
    ),
]
