"""The reference implementation's managed-input store as a process: a JSON call a line in, an answer a line out.

Runs in the peer's own environment (tests/peers/sf_m3.txt); see `managed_input_calls` for what a call is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path

from m3 import ElicitationResponse, FormElicitationRequest, PendingElicitationRound, UrlElicitationRequest
from m3.storage import SQLiteManagedInputStore
from managed_input_calls import Calls

TYPES = {
    kind.__name__: kind
    for kind in (ElicitationResponse, FormElicitationRequest, PendingElicitationRound, UrlElicitationRequest)
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        numbers = count(1)

        def new_store(clock: Callable[[], datetime]) -> SQLiteManagedInputStore:
            return SQLiteManagedInputStore(Path(folder) / f"{next(numbers)}.sqlite3", clock=clock)

        calls = Calls(TYPES, new_store)
        for line in sys.stdin:
            print(json.dumps(calls.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
