"""What the desk knows: customers, orders and sent e-mails, in memory or in the file M3_DESK_DATA."""

from __future__ import annotations

import copy
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Records = dict[str, Any]


def _customer(
    name: str, region: str, contact: str, email: str, tier: str, orders: int, revenue: float
) -> Records:
    return {
        "name": name,
        "region": region,
        "contact": contact,
        "email": email,
        "tier": tier,
        "orders_this_week": orders,
        "revenue_this_week": revenue,
        "note": "",
    }


STARTING_RECORDS: Records = {
    "customers": {
        "C-101": _customer(
            "Brandt & Sons", "North", "Ilse Brandt", "ilse@brandt.example", "gold", 14, 8420.0
        ),
        "C-102": _customer("Hafen Coffee", "North", "Piet Jansen", "piet@hafen.example", "silver", 6, 1975.5),
        "C-103": _customer(
            "Lindqvist Studio", "North", "Maja Lindqvist", "maja@lindqvist.example", "basic", 2, 610.0
        ),
        "C-104": _customer(
            "Bergmann Optik", "South", "Theo Bergmann", "theo@bergmann.example", "gold", 11, 6230.0
        ),
        "C-105": _customer("Alpenrad", "South", "Resi Huber", "resi@alpenrad.example", "silver", 9, 4120.0),
        "C-106": _customer(
            "Maison Claude", "West", "Claude Martin", "claude@maison.example", "gold", 17, 9890.0
        ),
        "C-107": _customer(
            "Rheinblick Hotel", "West", "Anna Kessler", "anna@rheinblick.example", "basic", 3, 845.0
        ),
    },
    "orders": {
        "O-5001": {
            "customer": "C-101",
            "amount": 249.0,
            "currency": "EUR",
            "what": "Desk lamp “Fjord”",
            "refunded": 0,
        },
        "O-5002": {
            "customer": "C-104",
            "amount": 1180.0,
            "currency": "EUR",
            "what": "Display case",
            "refunded": 0,
        },
        "O-5003": {
            "customer": "C-106",
            "amount": 86.4,
            "currency": "EUR",
            "what": "Tableware, chipped",
            "refunded": 0,
        },
        "O-5004": {
            "customer": "C-105",
            "amount": 540.0,
            "currency": "CHF",
            "what": "Bicycle trailer",
            "refunded": 0,
        },
    },
    "emails": [],
}

_in_memory = copy.deepcopy(STARTING_RECORDS)


@contextmanager
def open_records() -> Iterator[Records]:
    """The records, to read or to change in place; changes are kept when the block ends without an exception.

    With a file, one process at a time holds it: parallel calls run in separate server processes.
    """
    path = os.environ.get("M3_DESK_DATA")
    if not path:
        yield _in_memory
        return
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = Path(path)
        records = json.loads(file.read_text("utf-8")) if file.exists() else copy.deepcopy(STARTING_RECORDS)
        before = json.dumps(records)
        yield records
        if json.dumps(records) != before:
            _replace(file, records)


def _replace(file: Path, records: Records) -> None:
    """Write beside and rename, so that a reader never sees half a file."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(json.dumps(records, ensure_ascii=False, indent=1), "utf-8")
    draft.replace(file)
