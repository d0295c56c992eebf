"""The tiny run with one pause as a LangGraph graph: ask (interrupt), say the next line, end.

`langgraph_program.py URL` with "sqlite:///FILE" or "postgresql://...". The answer is a call in the same process: there
is no queue, no worker, no lease and no row of the decision, so nothing lies between answer and line but the graph.
Checkpoints are written before the next step begins (`durability="sync"`).
"""

from __future__ import annotations

import sqlite3
import sys
import time
import uuid
from typing import Any, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pace import Meter, serve
from psycopg import Connection
from psycopg.rows import dict_row

line_at = 0.0


class State(TypedDict, total=False):
    answer: str
    line: str


def ask(_: State) -> State:
    return {"answer": interrupt("Which segment?")}


def say(state: State) -> State:
    return {"line": f"Thank you. I go on with {state['answer']}."}


def end(_: State) -> State:
    """Begins once the checkpoint with the line is stored."""
    global line_at
    line_at = time.monotonic()
    return {}


def saver(url: str) -> Any:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False)
        connection.execute("PRAGMA synchronous=FULL")
        return SqliteSaver(connection)
    kept = Connection.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    return PostgresSaver(kept)


def graph(url: str) -> Any:
    checkpoints = saver(url)
    checkpoints.setup()
    built = StateGraph(State)
    for node in (ask, say, end):
        built.add_node(node)
    built.add_edge(START, "ask")
    built.add_edge("ask", "say")
    built.add_edge("say", "end")
    built.add_edge("end", END)
    return built.compile(checkpointer=checkpoints)


def main(url: str) -> None:
    tiny = graph(url)

    def one_run() -> tuple[float, float]:
        """When the answering call began, and when the next line was stored."""
        config = {"configurable": {"thread_id": uuid.uuid4().hex}}
        tiny.invoke({}, config, durability="sync")
        called = time.monotonic()
        tiny.invoke(Command(resume="enterprise"), config, durability="sync")
        return called, line_at

    def latency(count: int, jitter: float) -> list[dict[str, float]]:
        runs = [one_run() for _ in range(count)]
        return [{"call_line": (line - called) * 1000} for called, line in runs]

    def throughput(count: int) -> dict[str, float]:
        meter = Meter()
        for _ in range(count):
            one_run()
        return meter.read()

    serve({"latency": latency, "throughput": throughput})


if __name__ == "__main__":
    main(sys.argv[1])
