"""Machines with addresses of their own and lines between them that can be cut: network namespaces of Linux.

A namespace has no name. It is kept by a file descriptor of this process and by the processes inside, so nothing of it
is left once they are gone, however they ended, and tests that run beside each other never meet.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path

from tests.mcp.bindings import wait_for

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of <sched.h>; Python has it, and `setns`, from 3.12 on only."""

_WHOLE = "01"
"""TCP_ESTABLISHED in /proc/net/tcp."""

_OURS = Path("/proc/thread-self/ns/net")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Silence(StrEnum):
    """How a line is cut."""

    UNPLUGGED = "unplugged"
    """The machine's line is down. After a while the systems on both sides say that the other is not to be reached."""
    HALF_OPEN = "half-open"
    """Every packet is lost on the way, and nobody is told: neither side can know."""


@cache
def available() -> bool:
    """Whether this process may make networks and has the program that lays lines."""
    if _ip() is None:
        return False
    try:
        Namespace().close()
    except OSError:
        return False
    return True


def _ip() -> str | None:
    return shutil.which("ip") or next(
        (path for path in ("/usr/sbin/ip", "/sbin/ip") if os.path.exists(path)), None
    )


class Namespace:
    """A network without any line."""

    def __init__(self) -> None:
        with _returning():
            _checked(_LIBC.unshare(_NEW_NETWORK))
            self._fd = os.open(_OURS, os.O_RDONLY)
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"
        self.ip("link", "set", "lo", "up")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Connections and processes that this thread opens and starts meanwhile are on this machine, and stay there."""
        with _returning():
            _checked(_LIBC.setns(self._fd, 0))
            yield

    def ip(self, *words: str) -> None:
        """Run `ip` there."""
        program = _ip()
        assert program is not None
        with self.inside():
            done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"

    def connections(self, to: str) -> int:
        """How many connections to an address the system there takes for whole."""
        with self.inside():
            lines = Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]
        other = f"{int.from_bytes(socket.inet_aton(to), sys.byteorder):08X}"  # as this file has it
        fields = [line.split() for line in lines]
        return sum(remote.startswith(f"{other}:") and state == _WHOLE for _, _, remote, state, *_ in fields)

    def processes(self) -> list[int]:
        """Who is there now."""
        wanted = os.fstat(self._fd).st_ino
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                if (entry / "ns" / "net").stat().st_ino == wanted:
                    found.append(int(entry.name))
        return found

    def power_off(self) -> None:
        """End every process there at once."""

        def none_left() -> bool:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not self.processes()

        wait_for(none_left, "every process of the machine to be gone")

    def close(self) -> None:
        self.power_off()
        os.close(self._fd)


class Network:
    """A hub with a line to each machine. Use as a context manager: at the end every machine is switched off."""

    def __init__(self) -> None:
        self.hub = Namespace()
        self.machines: dict[str, Namespace] = {}
        self.addresses: dict[str, tuple[str, ...]] = {}
        self._cuts: list[tuple[str, ...]] = []
        with self.hub.inside():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        for machine in (*self.machines.values(), self.hub):
            machine.close()

    def join(self, name: str, addresses: int = 1) -> Namespace:
        """A further machine, with so many addresses in a network of its own."""
        machine = Namespace()
        subnet = f"10.77.{len(self.machines)}"
        self.machines[name] = machine
        self.addresses[name] = tuple(f"{subnet}.{number}" for number in range(2, 2 + addresses))
        self.hub.ip(
            "link", "add", f"to-{name}", "type", "veth", "peer", "name", "line", "netns", machine.path
        )
        self.hub.ip("addr", "add", f"{subnet}.1/24", "dev", f"to-{name}")
        for address in self.addresses[name]:
            machine.ip("addr", "add", f"{address}/24", "dev", "line")
        self.hub.ip("link", "set", f"to-{name}", "up")
        machine.ip("link", "set", "line", "up")
        machine.ip("route", "add", "default", "via", f"{subnet}.1")
        return machine

    def cut(self, name: str, how: Silence = Silence.HALF_OPEN, *, to: str | None = None) -> None:
        """Cut a machine off, or only from one address."""
        if how is Silence.UNPLUGGED:
            assert to is None, "a line that is pulled out leads nowhere"
            self.hub.ip("link", "set", f"to-{name}", "down")
            return
        for address in self.addresses[name]:
            others = ("to", to) if to else ()
            backwards = ("from", to) if to else ()
            for rule in (("from", address, *others), (*backwards, "to", address)):
                self.hub.ip("rule", "add", *rule, "blackhole")
                self._cuts.append((name, *rule))

    def heal(self, name: str) -> None:
        """Everything of this machine gets through again."""
        for cut in [cut for cut in self._cuts if cut[0] == name]:
            self.hub.ip("rule", "del", *cut[1:], "blackhole")
            self._cuts.remove(cut)
        self.hub.ip("link", "set", f"to-{name}", "up")


@contextlib.contextmanager
def _returning() -> Iterator[None]:
    """Be where this thread was before, whatever happens inside."""
    before = os.open(_OURS, os.O_RDONLY)
    try:
        yield
    finally:
        _checked(_LIBC.setns(before, 0))
        os.close(before)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
