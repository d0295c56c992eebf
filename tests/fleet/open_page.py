"""A page that stays open while a test does other things, as a browser's does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.mcp.bindings import wait_for
from tests.push.line import Line

PAUSE = 0.5
"""Seconds before it connects again, as in `static/m3web/hints.js`."""


class OpenPage:
    """Collects what the socket of one page is told, and connects again when it is closed. Use as a context manager."""

    def __init__(self, connect: Callable[[], Line], patience: float) -> None:
        self.connect, self.patience = connect, patience
        self.told: list[dict[str, Any]] = []
        self.closed_with: list[int] = []
        """The codes with which the server closed."""
        self._over = threading.Event()
        self._line: Line | None = None
        self._reading = threading.Thread(target=self._stay, name="open page", daemon=True)

    def __enter__(self) -> Self:
        self._reading.start()
        self.until(type="hello")
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # Again and again: it may be connecting anew in this moment, and then reads from another line.
        while self._reading.is_alive():
            if self._line is not None:
                with contextlib.suppress(OSError):  # closed by the server in this moment
                    self._line.hang_up()
            self._reading.join(PAUSE)

    def until(self, *, since: int = 0, **wanted: Any) -> dict[str, Any]:
        """The first message with these values, counted from the message with the number `since`."""

        def look() -> dict[str, Any] | None:
            return next((each for each in self.told[since:] if wanted.items() <= each.items()), None)

        message: dict[str, Any] = wait_for(look, f"the page to be told {wanted}", patience=self.patience)
        return message

    def shows(self, look: Callable[[], Any], *, since: int, **hint: Any) -> Any:
        """What a look gives, made as a page makes it: once for every hint with these values, and for every `hello`.

        Counted from the message with the number `since`. A hint that is on its way while the page connects anew is
        lost, and the `hello` after it counts instead; where neither comes the page goes on showing what was, and this
        fails.
        """
        seen = since

        def told_to_look() -> Any:
            nonlocal seen
            news = self.told[seen:]
            seen += len(news)
            wanted = any(each["type"] == "hello" or hint.items() <= each.items() for each in news)
            return look() if wanted else None

        return wait_for(told_to_look, f"the page to look at {hint} in time", patience=self.patience)

    def _stay(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, ValueError, IndexError, AssertionError):
                self._listen()
            self._over.wait(PAUSE)

    def _listen(self) -> None:
        with self.connect() as self._line:
            self._line.connection.settimeout(None)  # it is quiet for as long as nothing happens
            try:
                while True:
                    self.told.append(self._line.read())
            finally:
                if self._line.code is not None:
                    self.closed_with.append(self._line.code)
