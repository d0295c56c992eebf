"""A page that stays open while a test does other things, as a browser's does."""

from __future__ import annotations

import threading
from typing import Any, Self

from tests.mcp.bindings import wait_for
from tests.push.line import Line


class OpenPage:
    """Collects what the socket of one page is told. Use as a context manager, inside the network where it is."""

    def __init__(self, line: Line, patience: float) -> None:
        self.line, self.patience = line, patience
        line.connection.settimeout(None)  # it is quiet for as long as nothing happens
        self.told: list[dict[str, Any]] = []
        self.closed = False
        self._reading = threading.Thread(target=self._read, name="open page", daemon=True)

    def __enter__(self) -> Self:
        self.line.__enter__()
        self._reading.start()
        self.until(type="hello")
        return self

    def __exit__(self, *_: object) -> None:
        self.line.hang_up()
        self._reading.join()
        self.line.__exit__()

    def until(self, *, since: int = 0, **wanted: Any) -> dict[str, Any]:
        """The first message with these values, counted from the message with the number `since`."""

        def look() -> dict[str, Any] | None:
            found = [message for message in self.told[since:] if wanted.items() <= message.items()]
            assert found or not self.closed, (
                f"the server closed the socket before {wanted}: {self.told[since:]}"
            )
            return found[0] if found else None

        message: dict[str, Any] = wait_for(look, f"the page to be told {wanted}", patience=self.patience)
        return message

    def _read(self) -> None:
        try:
            while True:
                self.told.append(self.line.read())
        except (OSError, ValueError, IndexError):
            self.closed = True
