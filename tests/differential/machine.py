"""Generated sequences of calls on a few rounds, made on both sides, with the answers compared after each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.differential.both import Both
from tests.differential.choices import (
    CHANGES,
    EVERYTHING,
    FITTING,
    LIMIT,
    evidence,
    mostly,
    operation,
    owners,
    payloads,
    refused_payloads,
    seconds,
    two_payloads,
)
from tests.differential.rounds import DELIVERY, SCHEMA, STATUSES, creation, form, page, response

ROUNDS = 5
NEXT_STEP = dict(zip(STATUSES[1:4], DELIVERY, strict=True))


class Rounds(RuleBasedStateMachine):
    """A few rounds of two executions, and workers that know more or less what they may do."""

    def __init__(self, both: Both, executions: Callable[[], str]) -> None:
        super().__init__()
        self.both = both
        self.executions = [executions(), executions()]
        self.creations: dict[tuple[str, str], dict[str, Any]] = {}
        """What each round was created with, by execution and round id."""
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        """What was last heard of each round."""
        self.stale: dict[tuple[str, str], dict[str, str]] = {}
        """A holder that each round had before its last claim."""
        self.ended: set[str] = set()
        """Executions that ended with a lost round; ours open no further ones in them."""

    @initialize()
    def open(self) -> None:
        self.both.open()

    # --- the calls --------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.records) < ROUNDS and len(self.ended) < len(self.executions))
    @rule(data=st.data(), owner=owners, lease_seconds=seconds, two=st.booleans())
    def create(self, data: st.DataObject, owner: str, lease_seconds: float, two: bool) -> None:
        execution = data.draw(st.sampled_from([one for one in self.executions if one not in self.ended]))
        index = data.draw(st.sampled_from(self._open_indexes(execution)))
        requests = {"address": form(), "consent": page()} if two else {"address": form(schema=SCHEMA)}
        self._create(
            creation(
                execution,
                # Ours are unique in the whole database.
                f"round-{len(self.creations) + 1}-{execution}",
                logical_operation_id=operation(index),
                requests=requests,
                round_index=index,
                round_limit=data.draw(st.sampled_from([index + 1, LIMIT])),
                owner_id=owner,
                lease_token=data.draw(st.sampled_from(["lease-1", "lease-2", None])),
                lease_seconds=lease_seconds,
                **data.draw(st.sampled_from([{}, EVERYTHING])),
            )
        )

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def create_again(self, data: st.DataObject) -> None:
        """The same once more, or with one thing changed; also by its present holder."""
        at = self._any_round(data)
        again = dict(self.creations[at])
        if data.draw(st.booleans()):
            again.update(self._holder(at))
        change = data.draw(st.sampled_from([*[{}] * 10, *CHANGES]))
        again = {**again, **{name: value for name, value in change.items() if name != "pending"}}
        again["pending"] = {**again["pending"], **change.get("pending", {})}
        self._create(again)

    @precondition(lambda self: self.records)
    @rule(data=st.data(), key=st.sampled_from(["key-1", "key-1", "key-2"]))
    def submit(self, data: st.DataObject, key: str) -> None:
        at = self._any_round(data)
        fitting = two_payloads if len(self._pending(at)["requests"]) == 2 else payloads
        answers = data.draw(fitting if data.draw(mostly) else refused_payloads)
        self._call(
            "submit_responses", at, **self._who(data, at), responses=answers, response_idempotency_key=key
        )

    @precondition(lambda self: any(record["responses"] for record in self.records.values()))
    @rule(data=st.data(), key=st.sampled_from(["key-1", "key-2"]))
    def submit_what_is_stored(self, data: st.DataObject, key: str) -> None:
        """By the holder, under the key that it was stored with or under another."""
        answered = [at for at, record in self.records.items() if record["responses"]]
        at = data.draw(st.sampled_from(answered))
        stored = {key: response(**given) for key, given in self.records[at]["responses"].items()}
        self._call("submit_responses", at, **self._holder(at), responses=stored, response_idempotency_key=key)

    @precondition(lambda self: self.records)
    @rule(data=st.data(), step=st.sampled_from(DELIVERY))
    def deliver(self, data: st.DataObject, step: str) -> None:
        at = self._any_round(data)
        self._call(step, at, **self._who(data, at))

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """What a worker that does everything right would do next."""
        at = self._any_round(data)
        step = NEXT_STEP.get(self.records[at]["status"])
        if step:
            self._call(step, at, **self._holder(at))

    @precondition(lambda self: self.records)
    @rule(data=st.data(), lease_seconds=seconds)
    def renew(self, data: st.DataObject, lease_seconds: float) -> None:
        at = self._any_round(data)
        self._call("renew", at, **self._who(data, at), lease_seconds=lease_seconds)

    @precondition(lambda self: self.records)
    @rule(data=st.data(), owner=owners, lease_seconds=seconds, wait=mostly)
    def claim(self, data: st.DataObject, owner: str, lease_seconds: float, wait: bool) -> None:
        at = self._any_round(data)
        if wait:
            self._wait_for_end_of_lease(at)
        status = self.records[at]["status"]
        claimed = FITTING.get(status) if data.draw(mostly) else None
        if claimed is None:
            claimed = {
                "delivery_state": data.draw(evidence),
                "idempotent_delivery": data.draw(st.booleans()),
            }
        token = self._who(data, at)["lease_token"]
        before = self._holder(at)
        answer = self._call(
            "claim_round",
            at,
            owner_id=owner,
            lease_seconds=lease_seconds,
            expected_lease_token=data.draw(st.sampled_from([token] * 5 + [None])),
            **claimed,
        )
        if "ok" in answer:
            self.stale[at] = before

    @precondition(lambda self: self.records)
    @rule(
        data=st.data(),
        code=st.sampled_from(["stopped", "stopped", "recovery_unavailable", None]),
        message=st.sampled_from(["Stopped.", "Stopped.", "Lost."]),
        wait=mostly,
    )
    def end(self, data: st.DataObject, code: str | None, message: str, wait: bool) -> None:
        """The holder fails the round or, without a code, somebody else does because the holder is gone."""
        at = self._any_round(data)
        holder = self._who(data, at)
        if code is not None:
            self._call("fail", at, **holder, code=code, message=message)
            return
        if wait:
            self._wait_for_end_of_lease(at)
        lost = self._call("fail_recovery", at, expected_lease_token=holder["lease_token"], message=message)
        if "ok" in lost:
            self.ended.add(at[0])

    @rule(passed=st.sampled_from([0.000001, 0.5, 4.5, 30]))
    def time_passes(self, passed: float) -> None:
        self.both.advance(passed)

    # --- what must hold ---------------------------------------------------------------------------------------

    def teardown(self) -> None:
        for execution in self.executions:
            listed = self.both.call("list_rounds", execution_id=execution)["ok"]
            mine = [record for at, record in self.records.items() if at[0] == execution]
            assert listed == sorted(mine, key=lambda record: record["round_index"])
        for at in self.records:
            self.both.call("redacted_responses", execution_id=at[0], round_id=at[1])

    # --- bookkeeping ------------------------------------------------------------------------------------------

    def _create(self, arguments: dict[str, Any]) -> None:
        answer = self.both.call("create_round", **arguments)
        if "ok" in answer:
            at = (arguments["pending"]["execution_id"], arguments["pending"]["round_id"])
            self.creations.setdefault(at, arguments)
            self.records[at] = answer["ok"]

    def _call(self, name: str, at: tuple[str, str], **arguments: Any) -> dict[str, Any]:
        answer = self.both.call(name, execution_id=at[0], round_id=at[1], **arguments)
        if "ok" in answer:
            self.records[at] = answer["ok"]
        return answer

    def _any_round(self, data: st.DataObject) -> tuple[str, str]:
        return data.draw(st.sampled_from(list(self.records)))

    def _pending(self, at: tuple[str, str]) -> dict[str, Any]:
        pending: dict[str, Any] = self.records[at]["pending"]
        return pending

    def _holder(self, at: tuple[str, str]) -> dict[str, str]:
        lease = self.records[at]["lease"]
        return {"owner_id": lease["owner_id"], "lease_token": lease["lease_token"]}

    def _who(self, data: st.DataObject, at: tuple[str, str]) -> dict[str, str]:
        """Mostly the holder; sometimes an earlier one, or somebody who has only half of it right."""
        holder = self._holder(at)
        return data.draw(
            st.sampled_from(
                [
                    *[holder] * 6,
                    self.stale.get(at, holder),
                    {**holder, "owner_id": "worker-3"},
                    {**holder, "lease_token": "lease-3"},
                ]
            )
        )

    def _wait_for_end_of_lease(self, at: tuple[str, str]) -> None:
        """Until the very moment at which the lease is no longer live."""
        left = (
            datetime.fromisoformat(self.records[at]["lease"]["expires_at"]) - self.both.now
        ).total_seconds()
        if left > 0:
            self.both.advance(left)

    def _open_indexes(self, execution: str) -> list[int]:
        """Indexes that both judge alike: ours lets an operation have one pending round, and counts within it."""
        records = [record for at, record in self.records.items() if at[0] == execution]
        waiting = {
            record["pending"]["logical_operation_id"] for record in records if record["status"] == "pending"
        }
        taken = [record["round_index"] for record in records]
        return sorted({*taken, *(index for index in range(LIMIT) if operation(index) not in waiting)})
