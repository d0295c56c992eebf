"""Where keepers are: the host they live on, and the folder of their sockets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

MAX_SOCKET_PATH = 100
"""Longest socket path that every system takes (sun_path has 104 bytes at least), in bytes."""

ROOM_FOR_NAME = 40
"""Bytes that a socket's name and the slash before it may take."""

NAMED_AT_MOST = 40
"""Characters of a machine's own name that a host's identity shows."""


@lru_cache(maxsize=16)
def this_host(wanted: Path) -> str:
    """The place from which keepers in `wanted` are reached: a name for people, the folder's mark, and the folder's
    place in the running system, with spaces between; 74 characters at most.

    A socket is reached from any process that sees the same folder on the same running system, and from nowhere else:
    neither from a container of the same name with a folder of its own, nor from a machine that shares the files but
    not the sockets, nor after a restart of the machine. A worker that is replaced finds the same identity, name
    included, because the folder keeps it. Where there can be no such folder the identity is this process's alone.
    """
    try:
        folder = socket_folder(wanted)
        return f"{_mark_of(folder)} {_running_system(folder)}"
    except OSError:
        return f"{_machine()} none {secrets.token_hex(8)}"


def name_of(host: str) -> str:
    """How people call a host."""
    return host.split(" ")[0]


def has_same_folder(host: str, other: str) -> bool:
    """Whether two hosts have the same folder: one is the other before a restart, or they share files over a network."""
    return host.split(" ")[:2] == other.split(" ")[:2]


def _mark_of(folder: Path) -> str:
    """The name of the machine that first had this folder, and what tells the folder from every other one."""
    file = folder / "host"
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    handle, draft = tempfile.mkstemp(dir=folder, prefix=".host.")
    try:
        with os.fdopen(handle, "w") as written:
            written.write(f"{_machine()} {secrets.token_hex(8)}")
        with contextlib.suppress(FileExistsError):  # another process was first; its mark counts
            os.link(draft, file)
    finally:
        os.unlink(draft)
    return file.read_text()


def _machine() -> str:
    """What this machine calls itself, without spaces."""
    return "".join(os.uname().nodename.split())[:NAMED_AT_MOST] or "unnamed"


def _running_system(folder: Path) -> str:
    """The running system, and the folder's place in it: a copy of the folder, mark included, is another one."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        started = os.uname().nodename
    found = folder.stat()
    return hashlib.sha256(f"{started} {found.st_dev} {found.st_ino}".encode()).hexdigest()[:16]


def socket_folder(wanted: Path) -> Path:
    """`wanted`, or if its path is too long for sockets a folder of our own among the temporary files; made for
    its owner alone. Raises PermissionError if somebody else owns it or may enter it.
    """
    folder = wanted.absolute()
    if len(os.fsencode(folder)) + ROOM_FOR_NAME > MAX_SOCKET_PATH:
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"m3-keepers-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"the folder {folder} is not ours alone; its mode has to be 700")
    return folder
