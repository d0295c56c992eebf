"""Where keepers are: the host they live on, and the folder of their sockets."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

MAX_SOCKET_PATH = 100
"""Longest socket path that every system takes (sun_path has 104 bytes at least), in bytes."""

ROOM_FOR_NAME = 40
"""Bytes that a socket's name and the slash before it may take."""


def this_host() -> str:
    """This machine since it was started: a keeper is reached from nowhere else, and never after a restart."""
    name = os.uname().nodename
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return name
    return f"{name} {started}"


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
