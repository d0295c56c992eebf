"""What the handler of HTTP does with threads and connections, seen through a real daphne (`m3web.http_handler`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.handler_server import LASTING, digest
from tests.mcp.bindings import PATIENCE, ROOT, free_port, listens, wait_for
from tests.requirements import new_postgres_database


class Served:
    """The server in front of the views of `tests.api.handler_urls`."""

    def __init__(self, port: int, log: Path) -> None:
        self.url, self.log = f"http://127.0.0.1:{port}", log

    def get(self, view: str, method: str = "GET", **more: Any) -> httpx2.Response:
        return httpx2.request(method, f"{self.url}/{view}", timeout=PATIENCE, **more)

    def state(self) -> Any:
        return self.get("state").json()


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Served]:
    port, log = free_port(), folder / "log"
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("M3_", "DATABASE_"))
    }
    variables = {"DJANGO_SETTINGS_MODULE": "m3web.settings", "M3_DATA_DIR": str(folder), **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.api.handler_server", str(port)],
            cwd=ROOT,
            env={**inherited, **variables},
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(lambda: listens(port) or process.poll() is not None, "the server to listen", patience=60)
        assert process.poll() is None, log.read_text()
        yield Served(port, log)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("handler")) as served:
        yield served


@pytest.fixture
def served(sqlite: Served) -> Iterator[Served]:
    """Slow views wait until `go_on`."""
    sqlite.get("stop")
    yield sqlite
    sqlite.get("go_on")


def all_stuck(served: Served, callers: ThreadPoolExecutor, count: int) -> list[Future[httpx2.Response]]:
    """Slow requests, each seen to have begun."""
    stuck = [callers.submit(served.get, "slow") for _ in range(count)]
    wait_for(lambda: under_way(served) >= count, "the slow views to begin")
    return stuck


def under_way(served: Served) -> int:
    """How many requests have begun and not ended, beside that of this look."""
    signals = [signal for signal, _ in served.state()["signals"]]
    return signals.count("started") - signals.count("finished") - 1


def test_one_request_after_another_has_the_same_thread_and_the_same_connection(served: Served) -> None:
    first, *others = [served.get("where").json() for _ in range(5)]
    assert others == [first] * 4


def test_a_request_begins_is_answered_and_ends_in_one_thread(served: Served) -> None:
    thread = served.get("where").json()["thread"]
    wait_for(lambda: ["finished", thread] in served.state()["signals"], "the end of the request")
    assert ["started", thread] in served.state()["signals"]


def test_an_asynchronous_view_does_its_synchronous_work_in_the_thread_of_the_request(served: Served) -> None:
    here = served.get("where").json()
    assert served.get("asynchronous").json() == {"first": here, "second": here}


def test_a_mistake_of_a_view_is_a_500_and_costs_no_thread(served: Served) -> None:
    before = served.get("where").json()
    assert [served.get("broken").status_code for _ in range(LASTING + 1)] == [500] * (LASTING + 1)
    assert served.get("where").json() == before


def test_a_body_arrives_whole(served: Served) -> None:
    body = os.urandom(900_000)
    assert served.get("upload", "POST", content=body).json() == {"digest": digest(body)}


def test_a_file_is_sent_whole_and_its_head_alone_to_who_asks_for_no_more(served: Served) -> None:
    whole, head = served.get("file"), served.get("file", "HEAD")
    assert whole.content == b"x" * 300_000
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == "300000"


def test_the_pages_style_is_served(served: Served) -> None:
    file = next(iter(sorted((ROOT / "static").rglob("*.css"))))
    assert served.get(f"static/{file.relative_to(ROOT / 'static')}").content == file.read_bytes()


def test_views_that_wait_for_long_do_not_keep_others_from_being_answered(served: Served) -> None:
    with ThreadPoolExecutor(LASTING + 1) as callers:
        stuck = all_stuck(served, callers, LASTING + 1)
        assert served.state()["made"] > LASTING

        served.get("go_on")
        assert [each.result().status_code for each in stuck] == [200] * (LASTING + 1)
    wait_for(lambda: served.state()["made"] <= LASTING + 1, "threads that nobody needs to end")


def test_a_stream_holds_no_thread_while_it_is_sent(served: Served) -> None:
    with ExitStack() as stack:
        streams = []
        for _ in range(LASTING * 3):
            answer = stack.enter_context(httpx2.stream("GET", f"{served.url}/stream", timeout=PATIENCE))
            lines = answer.iter_lines()
            assert next(lines) == "one"
            streams.append(lines)
        assert served.state()["made"] <= LASTING

        served.get("go_on")
        assert [list(lines) for lines in streams] == [["two"]] * len(streams)
    wait_for(lambda: under_way(served) == 0, "the end of all streams to be told")


def test_a_reader_who_leaves_a_stream_ends_it(served: Served) -> None:
    with httpx2.stream("GET", f"{served.url}/stream", timeout=PATIENCE) as answer:
        assert next(answer.iter_lines()) == "one"
    wait_for(lambda: under_way(served) == 0, "the end of the stream to be told")


def test_a_view_whose_client_left_comes_to_its_end_with_its_body_and_its_connection(served: Served) -> None:
    logged = served.log.read_text()
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{served.url}/slow", content=b"x" * 5_000, timeout=1)

    served.get("go_on")

    wait_for(lambda: served.state()["left"] == ["POST 5000 True"], "the view to end")
    wait_for(lambda: under_way(served) == 0, "its end to be told")
    assert served.state()["made"] <= LASTING
    assert served.log.read_text() == logged


def test_a_thread_gives_its_connection_back_to_the_pool_of_postgresql(tmp_path: Path) -> None:
    with (
        new_postgres_database() as url,
        serving(tmp_path, DATABASE_URL=url, M3_DATABASE_CONNECTIONS="8") as served,
        ExitStack() as stack,
    ):
        for _ in range(12):  # more than there are connections
            answer = stack.enter_context(httpx2.stream("GET", f"{served.url}/stream", timeout=PATIENCE))
            assert next(answer.iter_lines()) == "one"
        assert served.get("where").status_code == 200
        assert served.state()["made"] <= LASTING
