"""A connection to a server that can be cut and healed: everything goes through a port of ours."""

from __future__ import annotations

import contextlib
import socket
import threading


class Link:
    """Forwards every connection to `port` (loopback) to a server, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._open: set[socket.socket] = set()
        self._changing = threading.Lock()
        self._cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection, and let no new one through."""
        with self._changing:
            self._cut = True
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        """Let new connections through."""
        with self._changing:
            self._cut = False

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near, socket.create_connection(self._server) as far:
            with self._changing:
                if self._cut:
                    return
                self._open |= {near, far}
            back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
            back.start()
            self._pump(near, far)
            back.join()
            with self._changing:
                self._open -= {near, far}

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
