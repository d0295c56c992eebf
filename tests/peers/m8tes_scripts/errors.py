"""What the SDK raises for each refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from m8tes import M8tes, M8tesError

Refusal = list[Any]


def refusal(call: Callable[[], Any]) -> Refusal:
    """The class of what a call raises, its status and its code, as an application would branch on them."""
    try:
        call()
    except M8tesError as error:
        return [type(error).__name__, error.status_code, error.code, *missing(error)]
    return ["nothing was raised"]


def missing(error: M8tesError) -> list[str]:
    """What an error should carry beside that, and does not."""
    always = ("message", "request_id", "method", "path")
    twice = [] if error.code == error.error_code else ["error_code"]
    return [name for name in always if not getattr(error, name)] + twice


def of_runs(client: M8tes, agent_id: int, ended: int) -> dict[str, Refusal]:
    runs = client.runs
    return {
        "no such run": refusal(lambda: runs.get(999_999)),
        "no such agent": refusal(lambda: runs.create(agent_id=999_999, message="go", stream=False)),
        "another user's run": refusal(lambda: runs.get(ended, user_id="somebody")),
        "nothing to do": refusal(lambda: runs.create(agent_id=agent_id, message="", stream=False)),
        "a mode that asks nobody": refusal(
            lambda: runs.create(
                agent_id=agent_id,
                message="go",
                stream=False,
                permission_mode="approval",
                human_in_the_loop=False,
            )
        ),
        "no such mode": refusal(lambda: runs.update_permission_mode(ended, permission_mode="careless")),
        "the mode of a run that is over": refusal(
            lambda: runs.update_permission_mode(ended, permission_mode="approval")
        ),
        "cancel what is over": refusal(lambda: runs.cancel(ended)),
        "answer what is over": refusal(lambda: runs.answer(ended, answers={"Which segment?": "x"})),
        "answer nothing": refusal(lambda: runs.answer(ended, answers={})),
        "no such gate": refusal(lambda: runs.approve(ended, request_id="gone")),
        "files": refusal(lambda: runs.create(agent_id=agent_id, message="go", files=[("a.csv", b"1,2")])),
    }


def of_gates(client: M8tes, run_id: int, question: int, answered_itself: int) -> dict[str, Refusal]:
    """A call and a question that wait, and a run whose first question did not wait; afterwards nothing waits."""
    runs = client.runs
    [gate] = runs.permissions(run_id)
    [asked] = runs.permissions(question)
    by_itself = runs.permissions(answered_itself)[0]
    assert by_itself.auto_resolved
    first = by_itself.request_id
    found = {
        "no such decision": refusal(
            lambda: runs.approve(run_id, request_id=gate.request_id, decision="maybe")
        ),
        "answer a call": refusal(lambda: runs.answer(run_id, answers={"x": "y"}, request_id=gate.request_id)),
        "approve a question": refusal(lambda: runs.approve(question, request_id=asked.request_id)),
        "a question that nobody asked": refusal(lambda: runs.answer(question, answers={"Why?": "x"})),
    }
    found["a question that went on by itself"] = refusal(
        lambda: runs.answer(answered_itself, answers={"Which tone?": "Warm"}, request_id=first)
    )
    denied = runs.approve(run_id, request_id=gate.request_id, decision="deny", reason="Not now.")
    again = runs.approve(run_id, request_id=gate.request_id, decision="deny")
    assert (denied.status, again.status) == ("denied", "denied")
    found["the opposite"] = refusal(lambda: runs.approve(run_id, request_id=gate.request_id))
    [gate_of_cancelled] = [each for each in runs.permissions(answered_itself) if each.status == "pending"]
    runs.cancel(answered_itself)
    found["a call of a cancelled run"] = refusal(
        lambda: runs.approve(answered_itself, request_id=gate_of_cancelled.request_id)
    )
    return found


def of_the_rest(client: M8tes, agent_id: int) -> dict[str, Refusal]:
    client.users.create(user_id="cust_twice")
    return {
        "the same user": refusal(lambda: client.users.create(user_id="cust_twice")),
        "no such user": refusal(lambda: client.users.get("nobody")),
        "no such policy": refusal(lambda: client.permissions.delete(999_999)),
        "no such agent": refusal(lambda: client.agents.get(999_999)),
        "no such task": refusal(lambda: client.tasks.run(999_999, stream=False)),
        "what there is not here": refusal(lambda: client.runs.check()),
        "an empty tool": refusal(lambda: client.permissions.create(tool="")),
        "the key of another request": refusal(lambda: two_requests(client, agent_id)),
    }


def two_requests(client: M8tes, agent_id: int) -> None:
    for message in ("one", "another"):
        client.runs.create(agent_id=agent_id, message=message, stream=False, idempotency_key="two-requests")


def with_a_wrong_key(client: M8tes) -> Refusal:
    return refusal(lambda: client.runs.list())


def with_a_key_that_only_reads(client: M8tes, agent_id: int) -> list[Any]:
    page = client.runs.list(include_end_user_runs=True)
    return [
        len(page.data) > 0,
        refusal(lambda: client.runs.create(agent_id=agent_id, message="go", stream=False)),
    ]
