"""`?user_id=` at an address that names one run or one pause: it is theirs, or it is not there (m8tes-http 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.models import Round, Run, User
from tests.api.conftest import ALLOW, Caller, fields_of
from tests.api.requests import request_of
from tests.core.test_docs_contents import routed

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]

BODIES: dict[str, Any] = {
    "reply": {"message": "Go on"},
    "permission-mode": {"permission_mode": "plan"},
    "respond": {"responses": ALLOW, "idempotency_key": "k"},
    "draft": {"key": "approval", "response": ALLOW["approval"]},
    "answer": {"answers": {"approval": "allow"}},
}
"""By the last word of the address; the others take none, or one that names a request."""

NEVER_CARRIED_OUT = "with-files"


def _single() -> Iterator[tuple[str, str]]:
    """The routes that name a run or a pause, as they are now and as they come to be."""
    for method, address in routed():
        if ("{run_id}" in address or "{round_id}" in address) and not address.endswith(NEVER_CARRIED_OUT):
            yield method, address.removeprefix("/api/v2/")


SINGLE = list(_single())


def called(caller: Caller, pending: Round, method: str, address: str, query: str) -> Any:
    word = address.rpartition("/")[2]
    body = BODIES.get(word)
    if word == "approve":
        body = {"request_id": request_of(caller, pending)["request_id"], "decision": "allow"}
    path = address.format(run_id=pending.run_id, round_id=pending.pk)
    return caller.send(method, f"{path}{query}", body)


def test_there_are_such_routes() -> None:
    assert len(SINGLE) >= 14


@pytest.mark.parametrize("owner", ["cust_1", None])
@pytest.mark.parametrize(("method", "address"), SINGLE)
def test_a_run_or_pause_of_somebody_else_is_not_there_and_nothing_happens_to_it(
    calling: Calling, alice: User, make_run: MakeRun, make_round: MakeRound,
    method: str, address: str, owner: str | None,
) -> None:  # fmt: skip
    pending = make_round(run=make_run(user_id=owner))
    caller = calling(alice)

    assert called(caller, pending, method, address, "?user_id=cust_2").status_code == 404
    assert fields_of(called(caller, pending, method, address, "?user_id=")) == [["user_id"]]

    pending.refresh_from_db()
    run = Run.objects.get(pk=pending.run_id)
    assert Round.objects.pending().filter(pk=pending.pk).exists()
    assert (pending.version, run.status, run.mode, run.turns.count()) == (
        1,
        "waiting_for_input",
        "approval",
        1,
    )


@pytest.mark.parametrize(("method", "address"), SINGLE)
def test_their_own_user_id_changes_nothing(
    calling: Calling, alice: User, make_run: MakeRun, make_round: MakeRound, method: str, address: str
) -> None:
    first, second = (make_round(run=make_run(user_id="cust_1")) for _ in range(2))
    caller = calling(alice)

    plain = called(caller, first, method, address, "")

    assert plain.status_code != 404
    assert called(caller, second, method, address, "?user_id=cust_1").status_code == plain.status_code
