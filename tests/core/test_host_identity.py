"""What a host is: the folder of its keepers on one running system. Two never look the same; a restart changes none."""

from __future__ import annotations

import os
import shutil
import tempfile
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.keeper import place
from runs.keeper.place import has_same_folder, name_of


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """How another process sees its host, with its own name of the machine and its own start of it."""

    def look(folder: Path, *, name: str = "web-1", started: str = "") -> str:
        with monkeypatch.context() as other:
            other.setattr(place.os, "uname", lambda: types.SimpleNamespace(nodename=name))
            if started:
                other.setattr(place.Path, "read_text", _pretends(started))
            return place.this_host.__wrapped__(folder)

    return look


def _pretends(started: str) -> Callable[[Path], str]:
    read = Path.read_text

    def read_text(path: Path) -> str:
        return started if path.name == "boot_id" else read(path)

    return read_text


def test_a_worker_that_is_replaced_finds_the_same_host(folder: Path, look: Callable[..., str]) -> None:
    first = look(folder / "keepers")
    assert look(folder / "keepers") == first
    assert look(folder / "keepers", name="renamed") == first, "whatever the machine is called by then"
    assert name_of(first) == "web-1"
    assert len(first) <= 80, "as long as its column"


def test_two_folders_on_a_machine_are_two_hosts(folder: Path, look: Callable[..., str]) -> None:
    """Containers of one image may share everything but the folder."""
    first, second = look(folder / "one"), look(folder / "two")
    assert first != second
    assert not has_same_folder(first, second)


def test_a_copy_of_the_folder_is_another_host(folder: Path, look: Callable[..., str]) -> None:
    first = look(folder / "one")
    shutil.copytree(folder / "one", folder / "copy")
    assert look(folder / "copy") != first


def test_a_machine_that_shares_the_files_or_was_started_anew_is_another_host(
    folder: Path, look: Callable[..., str]
) -> None:
    first = look(folder / "keepers")
    other = look(folder / "keepers", started="another start")
    assert other != first
    assert has_same_folder(first, other)


def test_processes_that_start_at_once_agree(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(place.this_host.__wrapped__, [folder / "keepers"] * 8))
    assert len(seen) == 1
    assert [path.name for path in (folder / "keepers").iterdir()] == ["host"]


def test_where_no_folder_can_be_kept_the_host_is_nobody_elses(folder: Path, look: Callable[..., str]) -> None:
    open_to_all = folder / "open"
    open_to_all.mkdir()
    os.chmod(open_to_all, 0o755)
    assert look(open_to_all) != look(open_to_all)
    assert place.this_host(open_to_all) == place.this_host(open_to_all), (
        "within one process it stays the same"
    )


def test_a_long_or_odd_name_of_a_machine_fits(folder: Path, look: Callable[..., str]) -> None:
    host = look(folder / "keepers", name=" very long " * 20)
    assert len(host) <= 80
    assert len(host.split(" ")) == 3
    assert name_of(look(folder / "other", name="")) == "unnamed"
