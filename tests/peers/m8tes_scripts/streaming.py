"""Runs as streams of events."""

from __future__ import annotations

from typing import Any

from m8tes import ConflictError, M8tes, RunFailedError, RunStream


def told(stream: RunStream) -> dict[str, Any]:
    """Read a stream to its end, which it has to have: a cut one raises."""
    with stream:
        events = list(stream)
    return {
        "run_id": stream.run_id,
        "text": stream.text,
        "types": [event.raw["type"] for event in events],
        "known": sorted({str(event.type) for event in events}),
        "results": [event.raw.get("result") for event in events if event.raw["type"] == "tool-result-end"],
        "resolved": [
            [event.raw["resolved_status"], event.raw["remembered"]]
            for event in events
            if event.raw["type"] == "permission_resolved"
        ],
        "errors": stream.errors,
    }


def create(client: M8tes, **arguments: Any) -> dict[str, Any]:
    return told(client.runs.create(**arguments))


def decide_and_join(client: M8tes, agent_id: int, **arguments: Any) -> dict[str, Any]:
    """Up to the gate, the decision, and the whole run again with what came of it."""
    first = told(client.runs.create(agent_id=agent_id, **arguments))
    run_id = first["run_id"]
    [request] = [each for each in client.runs.permissions(run_id) if each.status == "pending"]
    client.runs.approve(run_id, request_id=request.request_id)
    return {"first": first, "second": told(client.runs.stream(run_id)), "run": client.runs.get(run_id).status}


def reply(client: M8tes, run_id: int, message: str) -> dict[str, Any]:
    return told(client.runs.reply(run_id, message=message))


def text(client: M8tes, **arguments: Any) -> list[str]:
    return list(client.runs.stream_text(**arguments))


def task(client: M8tes, task_id: int) -> dict[str, Any]:
    return told(client.tasks.run(task_id))


def over(client: M8tes, run_id: int) -> list[Any]:
    try:
        client.runs.stream(run_id)
    except ConflictError as error:
        return [error.status_code, error.code]
    return ["a stream"]


def failing(client: M8tes, agent_id: int) -> str:
    try:
        with client.runs.create(agent_id=agent_id, message="go", raise_on_error=True) as stream:
            list(stream)
    except RunFailedError as error:
        return error.message
    return "nothing was raised"


def sent_twice(client: M8tes, agent_id: int, key: str) -> dict[str, Any]:
    """The same streamed start twice, while the run waits for a person and when it is over."""
    arguments = {"agent_id": agent_id, "message": "go", "human_in_the_loop": True, "idempotency_key": key}
    first = told(client.runs.create(**arguments))
    second = told(client.runs.create(**arguments))
    client.runs.cancel(first["run_id"])
    try:
        client.runs.create(**arguments)
        third = "a stream"
    except ConflictError as error:
        third = str(error.code)
    return {"first": first, "second": second, "third": third}
