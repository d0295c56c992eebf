"""A PostgreSQL of one test alone, which may be stopped and started again; `tests.stores` has those that are shared."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg

from tests.mcp.bindings import free_port, wait_for


class OwnPostgres:
    """A cluster in `folder`. As root it runs as the user that Debian's package makes; it ends with this process."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries, self.data, self.port = binaries, folder / "data", free_port()
        self.url = f"postgres://m3@127.0.0.1:{self.port}/postgres"
        self.log = folder / "postgres.log"
        self.process: subprocess.Popen[bytes] | None = None
        owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        identity = [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"] if owner else []
        self._as = ["setpriv", *identity, "--pdeathsig", "INT", "--"] if shutil.which("setpriv") else []
        self.data.mkdir()
        if owner is not None:
            os.chown(self.data, owner.pw_uid, owner.pw_gid)
        make = ["-D", str(self.data), "-U", "m3", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*self._as, str(binaries / "initdb"), *make], check=True, capture_output=True, cwd="/")

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        command = [
            *self._as,
            str(self.binaries / "postgres"),
            "-D",
            str(self.data),
            "-p",
            str(self.port),
            *options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log)
        wait_for(self._answers, "PostgreSQL to accept connections")

    def stop(self) -> None:
        """End it as its service does for a restart: whoever is connected is cut off. Again does nothing."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
            self.process = None

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=5):
            return True
        return False
