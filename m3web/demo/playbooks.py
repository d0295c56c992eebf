"""What the demo's agents play: ordinary office work that stops wherever a person should have a say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.run_states import PermissionMode


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    name: str
    instructions: str
    servers: Sequence[str]
    mode: PermissionMode
    playbook: Mapping[str, Any]


SEGMENTS = [
    {"label": "enterprise", "description": "Large orgs (500+ seats)"},
    {"label": "mid-market", "description": "Growing teams"},
]

CUSTOMER_SUCCESS: dict[str, Any] = {
    "cases": [
        {
            "when": "weekly customer update",
            "steps": [
                {"say": "I will write this week's update. First I look at the numbers."},
                {
                    "ask": {
                        "questions": [
                            {
                                "question": "Which segment?",
                                "header": "Segment",
                                "multiSelect": False,
                                "options": SEGMENTS,
                            }
                        ]
                    },
                    "as": "choice",
                },
                {"call": "desk:list_customers", "args": {}, "as": "customers", "required": True},
                {
                    "call": "desk:send_email",
                    "args": {
                        "to": "all-hands@northwind.example",
                        "subject": 'Weekly customer update: {{ choice.answers."Which segment?" }}',
                        "body": "Customers this week: {{ length(customers.result.customers) }}.\n"
                        "Best week: {{ max_by(customers.result.customers, &revenue_this_week).name }}.\n"
                        'Segment in focus: {{ choice.answers."Which segment?" }}.',
                    },
                    "as": "mail",
                },
                {
                    "if": "mail.status == 'done'",
                    "finish": "The weekly customer update is out. {{ mail.result.sent && 'Sent to all hands.' }}",
                },
                {"finish": "I drafted the update and did not send it: {{ mail.error }}"},
            ],
        },
        {
            "when": "welcome",
            "steps": [
                {
                    "call": "desk:get_customer",
                    "args": {"customer_id": "C-102"},
                    "as": "customer",
                    "required": True,
                },
                {
                    "call": "desk:send_email",
                    "args": {
                        "to": "{{ customer.result.customer.email }}",
                        "subject": "Welcome back, {{ customer.result.customer.contact }}",
                        "body": "Dear {{ customer.result.customer.contact }},\n\nthank you for your order. "
                        "Your silver discount is active from today.\n\nNorthwind customer success",
                    },
                    "as": "mail",
                },
                {"finish": "Welcome mail: {{ mail.status }}. {{ mail.error }}"},
            ],
        },
        {
            "when": "refund",
            "steps": [
                {"say": "Order O-5003 arrived chipped. I prepare the refund."},
                {
                    "call": "desk:refund",
                    "args": {
                        "order_id": "O-5003",
                        "amount": 86.4,
                        "currency": "EUR",
                        "reason": "Arrived chipped; photos attached.",
                    },
                    "as": "refund",
                },
                {"finish": "Refund: {{ refund.status }}. {{ refund.error }}"},
            ],
        },
        {
            "when": "prioritize",
            "steps": [
                {
                    "ask": {
                        "questions": [
                            {
                                "question": "Which customer segment should I prioritize?",
                                "header": "Segment",
                                "multiSelect": False,
                                "options": SEGMENTS,
                            },
                            {
                                "question": "Which channels may I use?",
                                "header": "Channels",
                                "multiSelect": True,
                                "options": [
                                    {"label": "E-mail", "description": "The shared team address"},
                                    {"label": "Phone", "description": "Office hours only"},
                                    {"label": "Letter", "description": "Two days by post"},
                                ],
                            },
                        ]
                    },
                    "as": "choice",
                },
                {
                    "finish": 'Understood: {{ choice.answers."Which customer segment should I prioritize?" }} first, '
                    "by {{ join(', ', choice.answers.\"Which channels may I use?\") }}."
                },
            ],
        },
    ],
    "steps": [
        {
            "say": "I can write the weekly customer update, welcome a customer, refund an order, "
            "or prioritize a segment."
        },
        {"finish": "Tell me which of these you want, for example: draft and send a weekly customer update."},
    ],
    "replies": [
        [
            {"call": "desk:list_customers", "args": {"region": "North"}, "as": "north"},
            {"call": "desk:list_customers", "args": {"region": "South"}, "as": "south"},
            {"call": "desk:list_customers", "args": {"region": "West"}, "as": "west"},
            {
                "call": "desk:send_email",
                "args": {
                    "to": "all-hands@northwind.example",
                    "subject": "Weekly customer update by region",
                    "body": "North: {{ sum(north.result.customers[].revenue_this_week) }} €\n"
                    "South: {{ sum(south.result.customers[].revenue_this_week) }} €\n"
                    "West: {{ sum(west.result.customers[].revenue_this_week) }} €",
                },
                "as": "regional",
            },
            {"if": "regional.status == 'done'", "finish": "Sent, broken down by region."},
            {"finish": "The breakdown by region is ready and was not sent: {{ regional.error }}"},
        ]
    ],
}

LOGISTICS: dict[str, Any] = {
    "cases": [
        {
            "when": "insure",
            "steps": [
                {
                    "call": "shipping:insure_shipment",
                    "args": {"tracking_number": "NW7F3A09C2"},
                    "as": "cover",
                },
                {"finish": "Insurance: {{ cover.status }}. {{ cover.result.policy }}{{ cover.error }}"},
            ],
        },
        {
            "when": "complaint",
            "steps": [
                {"prompt": "shipping:complaint", "args": {"tracking_number": "NW7F3A09C2"}, "as": "letter"},
                {"read": "shipping:shipping://labels/NW7F3A09C2", "as": "label"},
                {
                    "finish": "The complaint is drafted ({{ letter.status }}) "
                    "and the label is printed ({{ label.status }})."
                },
            ],
        },
        {
            "when": "compare",
            "steps": [
                {
                    "parallel": [
                        {
                            "call": "shipping:quote",
                            "args": {"weight_kg": 2.5, "service": "economy"},
                            "as": "economy",
                        },
                        {
                            "call": "shipping:quote",
                            "args": {"weight_kg": 2.5, "service": "express"},
                            "as": "express",
                        },
                    ]
                },
                {
                    "finish": "Economy {{ economy.result.price_eur }} €, express {{ express.result.price_eur }} €."
                },
            ],
        },
    ],
    "steps": [
        {
            "call": "shipping:quote",
            "args": {"weight_kg": 2.5, "country": "DE", "service": "standard"},
            "as": "quote",
        },
        {
            "say": "Standard delivery costs {{ quote.result.price_eur }} € and takes {{ quote.result.days }} days."
        },
        {
            "call": "shipping:book_shipment",
            "args": {"item": "Desk lamp “Fjord”", "quantity": 1},
            "as": "booking",
            "required": True,
        },
        {
            "finish": "{{ booking.result.booked && join('', ['Booked. Tracking number ', "
            "booking.result.tracking_number, '.']) || 'Nothing was booked.' }}"
        },
    ],
}

PLANNER: dict[str, Any] = {
    "steps": [
        {"call": "desk:list_customers", "args": {"region": "West"}, "as": "west"},
        {
            "plan": [
                "1. Look up the two best customers of the West region.\n"
                "2. Move Maison Claude's contact note to the new account manager.\n"
                "3. Ship both a sample of the new lamp.\n"
                "4. Report what was done.",
                "1. Look up the two best customers of the West region.\n"
                "2. Change the contact note only; no shipment yet.\n"
                "3. Report what was done.",
            ],
            "as": "plan",
        },
        {
            "parallel": [
                {"call": "desk:get_customer", "args": {"customer_id": "C-106"}, "as": "first"},
                {"call": "desk:get_customer", "args": {"customer_id": "C-107"}, "as": "second"},
            ]
        },
        {
            "call": "desk:update_customer",
            "args": {"customer_id": "C-106", "note": "New account manager since this week: R. Osei."},
            "as": "note",
        },
        {
            "if": "note.status == 'done'",
            "run": {"agent": "Logistics", "message": "Book a sample for Maison Claude"},
            "as": "sample",
        },
        {
            "finish": "Done. Note: {{ note.status }}. Sample: {{ sample.result || sample.error || 'not sent' }}"
        },
    ]
}

AGENTS = [
    AgentSpec(
        name="Customer success",
        instructions="Keeps customers informed. Drafts before it sends, and asks when in doubt.",
        servers=["desk"],
        mode=PermissionMode.APPROVAL,
        playbook=CUSTOMER_SUCCESS,
    ),
    AgentSpec(
        name="Logistics",
        instructions="Quotes, books and insures parcels. The carrier asks for addresses and consent by itself.",
        servers=["shipping"],
        mode=PermissionMode.AUTONOMOUS,
        playbook=LOGISTICS,
    ),
    AgentSpec(
        name="Operations planner",
        instructions="Proposes a plan first and keeps to it. Hands shipping over to Logistics.",
        servers=["desk", "shipping"],
        mode=PermissionMode.PLAN,
        playbook=PLANNER,
    ),
]

FIRST_RUNS: list[tuple[str, str, str | None]] = [
    ("Customer success", "Send the welcome mail to Hafen Coffee", None),
    ("Logistics", "Book the lamp for order 77", None),
    ("Logistics", "Insure parcel NW7F3A09C2", None),
    ("Customer success", "Which segment should we prioritize next quarter?", None),
    ("Operations planner", "Hand over the West region", None),
]
"""One run for every kind of pause: approval, form, form and URL, question, plan."""
