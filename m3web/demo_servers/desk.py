"""Customer desk on MCP 2025-11-25: a call that needs an answer asks for it on the open session.

It deliberately does not speak 2026-07-28, because the older generation is what most servers speak.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from m3web.demo_servers import http_port, record_effect
from m3web.demo_servers.desk_records import Records, open_records
from m3web.demo_servers.desk_tools import TOOLS

Context = ServerRequestContext[Any, Any]
Arguments = dict[str, Any]


class DeskError(Exception):
    """The call cannot be done; the text is the tool's error result."""


def result(text: str, **structured: Any) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured or None
    )


def customer_of(records: Records, customer_id: str) -> Records:
    found: Records | None = records["customers"].get(customer_id)
    if found is None:
        raise DeskError(f"There is no customer {customer_id}. Use list_customers to see the ids.")
    return found


async def list_customers(_: Context, arguments: Arguments) -> CallToolResult:
    region = arguments.get("region")
    with open_records() as records:
        rows = [
            {
                "id": key,
                **{f: c[f] for f in ("name", "region", "tier", "orders_this_week", "revenue_this_week")},
            }
            for key, c in records["customers"].items()
            if region in (None, c["region"])
        ]
    lines = [
        f"{r['id']} {r['name']} ({r['region']}, {r['tier']}): {r['orders_this_week']} orders, "
        f"{r['revenue_this_week']:.2f} € this week"
        for r in rows
    ]
    return result("\n".join(lines) or "No customers.", customers=rows)


async def get_customer(_: Context, arguments: Arguments) -> CallToolResult:
    with open_records() as records:
        key = arguments["customer_id"]
        customer = {"id": key, **customer_of(records, key)}
        customer["orders"] = [
            {"id": order_id, **order}
            for order_id, order in records["orders"].items()
            if order["customer"] == key
        ]
    return result(json.dumps(customer, ensure_ascii=False, indent=1), customer=customer)


async def send_email(_: Context, arguments: Arguments) -> CallToolResult:
    mail = {field: arguments[field] for field in ("to", "subject", "body")}
    with open_records() as records:
        records["emails"].append(mail)
    record_effect("send_email", to=mail["to"], subject=mail["subject"])
    return result(f"Sent “{mail['subject']}” to {mail['to']}.", sent=True)


async def update_customer(_: Context, arguments: Arguments) -> CallToolResult:
    changes: Records = {f: arguments[f] for f in ("contact", "email", "tier", "note") if f in arguments}
    if not changes:
        raise DeskError("Nothing to change: give contact, email, tier or note.")
    with open_records() as records:
        customer_of(records, arguments["customer_id"]).update(changes)
    record_effect("update_customer", customer_id=arguments["customer_id"], fields=sorted(changes))
    return result(f"Updated {', '.join(sorted(changes))} of {arguments['customer_id']}.", changed=changes)


async def delete_customer(_: Context, arguments: Arguments) -> CallToolResult:
    key = arguments["customer_id"]
    with open_records() as records:
        name = customer_of(records, key)["name"]
        del records["customers"][key]
    record_effect("delete_customer", customer_id=key)
    return result(f"Deleted {name} ({key}).", deleted=key)


def refund_form(amount: float, currency: str) -> dict[str, Any]:
    reasons = {
        "damaged": "Arrived damaged",
        "late": "Arrived too late",
        "wrong_item": "Wrong item",
        "goodwill": "Goodwill",
    }
    return {
        "type": "object",
        "properties": {
            "reason_code": {
                "type": "string",
                "title": "Reason for the books",
                "oneOf": [{"const": code, "title": title} for code, title in reasons.items()],
            },
            "confirm_amount": {
                "type": "number",
                "title": f"Type the amount to confirm ({currency})",
                "description": f"The refund asked for is {amount:.2f} {currency}.",
                "minimum": 0.01,
            },
            "notify_customer": {"type": "boolean", "title": "Tell the customer by e-mail", "default": True},
        },
        "required": ["reason_code", "confirm_amount"],
    }


async def refund(context: Context, arguments: Arguments) -> CallToolResult:
    """Asks twice on the open session, first by form, then by URL, and only then pays."""
    order_id, amount = arguments["order_id"], float(arguments["amount"])
    currency = arguments.get("currency", "EUR")
    check_refund(order_id, amount, currency)
    answer = await context.session.elicit_form(
        f"Refund {amount:.2f} {currency} for order {order_id}? {arguments['reason']}",
        refund_form(amount, currency),
        related_request_id=context.request_id,
    )
    if answer.action != "accept":
        return result(f"No refund was made: the form was not accepted ({answer.action}).", refunded=False)
    form = answer.content or {}
    if form.get("confirm_amount") != amount:
        raise DeskError(
            f"No refund was made: {form.get('confirm_amount')} was confirmed instead of {amount:.2f}."
        )
    consent_id = f"consent-{secrets.token_hex(6)}"
    consent = await context.session.elicit_url(
        f"Confirm the payment of {amount:.2f} {currency} at the bank.",
        f"https://bank.northwind.example/consent/{consent_id}?order={order_id}",
        consent_id,
        related_request_id=context.request_id,
    )
    if consent.action != "accept":
        return result(
            f"No refund was made: the bank's consent was not given ({consent.action}).", refunded=False
        )
    await context.session.send_elicit_complete(consent_id, related_request_id=context.request_id)
    return pay_refund(order_id, amount, currency, str(form.get("reason_code")))


def check_refund(order_id: str, amount: float, currency: str) -> None:
    with open_records() as records:
        order = records["orders"].get(order_id)
    if order is None:
        raise DeskError(f"There is no order {order_id}.")
    if currency != order["currency"]:
        raise DeskError(f"Order {order_id} was paid in {order['currency']}, not {currency}.")
    left = order["amount"] - order["refunded"]
    if not 0 < amount <= left:
        raise DeskError(f"Order {order_id} can be refunded up to {left:.2f} {currency}.")


def pay_refund(order_id: str, amount: float, currency: str, reason_code: str) -> CallToolResult:
    check_refund(order_id, amount, currency)
    with open_records() as records:
        records["orders"][order_id]["refunded"] += amount
    reference = f"RF-{secrets.token_hex(3).upper()}"
    record_effect("refund", order_id=order_id, amount=amount, currency=currency, reference=reference)
    return result(
        f"Refunded {amount:.2f} {currency} for order {order_id} ({reason_code}). Reference {reference}.",
        refunded=True,
        reference=reference,
        amount=amount,
        currency=currency,
    )


HANDLERS: dict[str, Callable[[Context, Arguments], Awaitable[CallToolResult]]] = {
    "list_customers": list_customers,
    "get_customer": get_customer,
    "send_email": send_email,
    "refund": refund,
    "update_customer": update_customer,
    "delete_customer": delete_customer,
}


async def on_list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool.model_validate(tool) for tool in TOOLS])


async def on_call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    handler = HANDLERS.get(params.name)
    if handler is None:
        raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name}")
    arguments = dict(params.arguments or {})
    try:
        check_required(params.name, arguments)
        return await handler(context, arguments)
    except DeskError as problem:
        return CallToolResult(content=[TextContent(type="text", text=str(problem))], is_error=True)


def check_required(tool_name: str, arguments: Arguments) -> None:
    required = next(tool["inputSchema"]["required"] for tool in TOOLS if tool["name"] == tool_name)
    missing = [name for name in required if name not in arguments]
    if missing:
        raise DeskError(f"Missing: {', '.join(missing)}.")


server: Server[Any] = Server(
    "desk",
    title="Northwind Desk",
    version="3.2.1",
    instructions="Reads and changes customer records, sends e-mail and makes refunds.",
    on_list_tools=on_list_tools,
    on_call_tool=on_call_tool,
)


async def serve_stdio() -> None:
    """Serve one client, by handshake only (`Server.run` would also serve 2026-07-28)."""
    async with stdio_server() as (read, write), server.lifespan(server) as state:
        await serve_loop(server, read, write, lifespan_state=state)


def serve_http(port: int) -> None:
    """Serve HTTP on 127.0.0.1, refusing requests of protocol versions that have no handshake."""
    import uvicorn

    app = server.streamable_http_app(host="127.0.0.1")

    async def handshake_only(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if version and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Unsupported protocol version"})
            return
        await app(scope, receive, send)

    uvicorn.run(handshake_only, host="127.0.0.1", port=port, log_level="warning")


def main() -> None:
    port = http_port("Demo MCP server: customer desk (protocol 2025-11-25).")
    if port is None:
        anyio.run(serve_stdio)
    else:
        serve_http(port)


if __name__ == "__main__":
    main()
