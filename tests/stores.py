"""A PostgreSQL and a Redis of our own: started on a free port in a temporary folder, stopped by their process.

PostgreSQL keeps fsync on and refuses to run as root, so as root it runs as the user that Debian's package makes.
Both die with the process that started them, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.mcp.bindings import free_port, listens, wait_for

LOOPBACK = "127.0.0.1"
_VERSIONS = ("15", "16", "17", "18")
_SERVER_SETTINGS = {
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "on",
    "deadlock_timeout": "200ms",
    "timezone": "America/New_York",  # a server's own time zone must not matter
}


def postgres_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`, which Debian keeps off the PATH."""
    found = shutil.which("initdb")
    beside = [Path(found).resolve().parent] if found else []
    known = [Path("/usr/lib/postgresql", version, "bin") for version in _VERSIONS]
    return next((folder for folder in [*known, *beside] if (folder / "postgres").exists()), None)


@contextlib.contextmanager
def postgres(binaries: Path, *, address: str = LOOPBACK, trusted: str | None = None) -> Iterator[str]:
    """Run a fresh cluster on `address`; gives the URL of its maintenance database.

    `trusted` is a network from which it lets everybody in, beside this machine.
    """
    with tempfile.TemporaryDirectory(prefix="m3-postgres-") as folder:
        owner = _owner()
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data, port = Path(folder, "data"), free_port()
        # The language's order of words, as most installations have it, and not that of bytes, as SQLite has it.
        make = ["-D", str(data), "-U", "m3", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
        make += ["--locale-provider=icu", "--icu-locale=en", "--no-sync"]
        subprocess.run(
            [*dying_with_us(owner), str(binaries / "initdb"), *make],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        if trusted is not None:
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {trusted} trust\n")
        wanted = {"listen_addresses": address, **_SERVER_SETTINGS}
        options = [part for name, value in wanted.items() for part in ("-c", f"{name}={value}")]
        command = [
            *dying_with_us(owner),
            str(binaries / "postgres"),
            "-D",
            str(data),
            "-p",
            str(port),
            *options,
        ]
        url = f"postgres://m3@{address}:{port}/postgres"
        with _running(command, Path(folder), stop=signal.SIGINT) as server:
            wait_for(lambda: server.poll() is not None or _accepts(url), "PostgreSQL to accept connections")
            yield url


@contextlib.contextmanager
def redis(binary: str, *, address: str = LOOPBACK) -> Iterator[str]:
    """Run a Redis that keeps nothing on `address`; gives its URL."""
    with tempfile.TemporaryDirectory(prefix="m3-redis-") as folder:
        port = free_port()
        command = [*dying_with_us(), binary, "--port", str(port), "--bind", address, "--dir", folder]
        command += ["--protected-mode", "no"]
        with _running(
            [*command, "--save", "", "--appendonly", "no"], Path(folder), stop=signal.SIGTERM
        ) as server:
            wait_for(lambda: server.poll() is not None or listens(port, address), "Redis to listen")
            yield f"redis://{address}:{port}/0"


def _owner() -> pwd.struct_passwd | None:
    """Who runs the cluster if we are root; None if we are not."""
    return pwd.getpwnam("postgres") if os.geteuid() == 0 else None


def dying_with_us(owner: pwd.struct_passwd | None = None) -> list[str]:
    """The beginning of a command that ends when its starter does, and runs as `owner` if that is said."""
    if shutil.which("setpriv") is None:
        return []
    identity = [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"] if owner else []
    return ["setpriv", *identity, "--pdeathsig", "INT", "--"]


def _accepts(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5):
        return True
    return False


@contextlib.contextmanager
def _running(command: list[str], folder: Path, *, stop: signal.Signals) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield server
        ended = server.poll()
        if ended is not None:
            raise RuntimeError(f"{command[-1]} ended ({ended}):\n{(folder / 'log').read_text()[-2000:]}")
    finally:
        server.send_signal(stop)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
