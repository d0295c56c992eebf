"""What the database itself refuses, whatever code asks for it. Every constraint has its attempt here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from approvals.models import Policy
from runs import audit, end_users, keys
from runs.models import (
    Account,
    Agent,
    ApiKey,
    EndUser,
    Event,
    IdempotencyKey,
    LedgerEntry,
    Membership,
    Role,
    Round,
    Run,
    SeenAddress,
    SeenDefinition,
    Server,
    Step,
    Task,
    Tool,
    ToolCall,
    ToolWord,
    Turn,
    User,
    WebhookDelivery,
    WebhookEndpoint,
)

OLD = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@dataclass
class World:
    """One valid row of every kind, for an attempt to spoil."""

    account: Account
    membership: Membership
    end_user: EndUser
    server: Server
    tool: Tool
    tool_word: ToolWord
    seen_definition: SeenDefinition
    seen_address: SeenAddress
    agent: Agent
    task: Task
    run: Run
    turn: Turn
    step: Step
    toolcall: ToolCall
    round: Round
    event: Event
    policy: Policy
    api_key: ApiKey
    delivery: WebhookDelivery
    entry: LedgerEntry
    idempotency_key: IdempotencyKey
    spare: User
    """Somebody whom no key acts as."""


@dataclass
class Attempt:
    """Spoil the world's `row` by `fields`; with `copy` a second row of that kind is made instead.

    `prepare` makes the row one that only the named constraint can still refuse.
    """

    constraint: str
    row: str
    fields: dict[str, Any] = field(default_factory=dict)
    copy: bool = False
    prepare: dict[str, Any] = field(default_factory=dict)
    or_else: str = ""
    """Another constraint that such a row breaks as well; which of the two is named first is the database's choice."""

    def __str__(self) -> str:
        return f"{self.constraint} {self.fields}".strip("{} ")


FINISHED = {"status": "finished", "outcome": "completed"}
ANSWERED = {"status": "response_validated", "outcome": "allowed", "responses": {"approval": {}}}
FAILED = {"status": "failed", "outcome": "timed_out", "failure_code": "timeout"}

ATTEMPTS = [
    Attempt("membership_once", "membership", copy=True),
    Attempt("membership_role_known", "membership", {"role": "owner"}),
    Attempt("end_user_once", "end_user", copy=True),
    Attempt("end_user_named", "end_user", {"user_id": ""}),
    Attempt("server_name_once", "server", copy=True),
    Attempt("server_name_without_colon", "server", {"name": "a:b"}),
    Attempt("server_name_not_local", "server", {"name": "local"}),
    # Whatever has another transport has no fitting address either.
    Attempt("server_transport_known", "server", {"transport": "pigeon"}, or_else="server_has_one_address"),
    Attempt("server_has_one_address", "server", {"url": "https://example.com"}),
    Attempt("server_has_one_address", "server", {"entry": "", "command": ""}),
    Attempt("server_has_one_address", "server", {"transport": "http", "url": "https://example.com"}),
    Attempt("server_has_one_address", "server", {"transport": "http", "entry": "", "url": ""}),
    Attempt("server_has_one_address", "server", {"command": "also-this"}),
    Attempt("tool_name_once", "tool", copy=True),
    Attempt("tool_risk_known", "tool", {"risk": "harmless"}),
    Attempt("definition_seen_once", "seen_definition", copy=True),
    Attempt("address_seen_once", "seen_address", copy=True),
    Attempt("word_risk_known", "tool_word", {"risk": "harmless"}),
    Attempt("agent_name_once", "agent", copy=True),
    Attempt("agent_default_mode_known", "agent", {"default_mode": "yolo"}),
    Attempt("task_default_mode_known", "task", {"default_mode": "yolo"}),
    Attempt("run_mode_known", "run", {"mode": "yolo"}),
    Attempt("run_human_input_known", "run", {"human_input": "maybe"}),
    Attempt("run_status_known", "run", {"status": "paused"}),
    Attempt("run_outcome_known", "run", {"outcome": "fine"}, prepare=FINISHED),
    Attempt("run_finished_has_outcome", "run", {"status": "finished"}),
    Attempt("run_finished_has_outcome", "run", {"outcome": "completed"}),
    Attempt("run_seen_not_ahead", "run", {"wake_seq": 1, "seen_seq": 2}),
    Attempt("turn_index_once", "turn", copy=True),
    Attempt("turn_status_known", "turn", {"status": "paused"}),
    Attempt("turn_outcome_known", "turn", {"outcome": "fine"}, prepare={**FINISHED, "finished_at": OLD}),
    Attempt("turn_finished_has_outcome", "turn", {"status": "finished", "finished_at": OLD}),
    Attempt("turn_finished_has_outcome", "turn", FINISHED),
    Attempt("turn_finished_has_outcome", "turn", {"finished_at": OLD}),
    Attempt("step_seq_once", "step", {"path": "elsewhere"}, copy=True),
    Attempt("step_path_once", "step", {"seq": 99}, copy=True),
    Attempt("step_kind_known", "step", {"kind": "dance"}),
    Attempt("call_phase_known", "toolcall", {"phase": "flying"}),
    Attempt("call_operation_known", "toolcall", {"operation": "completion"}),
    Attempt("round_kind_known", "round", {"kind": "riddle"}),
    Attempt("round_status_known", "round", {"status": "open", "outcome": "allowed", "responses": {}}),
    Attempt("round_outcome_known", "round", {"outcome": "fine"}, prepare=ANSWERED),
    Attempt("round_index_once_per_operation", "round", {"id": "b"}, copy=True, prepare=ANSWERED),
    Attempt("round_one_open_per_operation", "round", {"id": "b", "round_index": 1}, copy=True),
    Attempt("round_index_below_limit", "round", {"round_index": 10}),
    Attempt("round_failed_has_code", "round", {"failure_code": None}, prepare=FAILED),
    Attempt("round_failed_has_code", "round", {"failure_code": "timeout"}),
    Attempt("round_ended_has_outcome", "round", {"outcome": None}, prepare=ANSWERED),
    Attempt("round_ended_has_outcome", "round", {"outcome": "allowed"}),
    Attempt("round_answered_has_responses", "round", {"responses": None}, prepare=ANSWERED),
    Attempt("round_without_step_is_elicitation", "round", {"step": None}),
    Attempt("round_only_questions_go_on", "round", {"continue_at": OLD}),
    Attempt("event_seq_once", "event", copy=True),
    Attempt("policy_effect_known", "policy", {"effect": "shrug"}),
    Attempt("policy_scope_known", "policy", {"scope": "planet"}),
    Attempt("policy_source_known", "policy", {"source": "rumour"}),
    Attempt("policy_scope_names_its_owner", "policy", {"scope": "user"}),
    Attempt("policy_scope_names_its_owner", "policy", {"scope": "run"}),
    Attempt("policy_scope_names_its_owner", "policy", {"end_user": "end_user"}),
    Attempt("policy_scope_names_its_owner", "policy", {"run": "run"}),
    Attempt("policy_scope_names_its_owner", "policy", {"scope": "run", "run": "run", "end_user": "end_user"}),
    Attempt("policy_once_per_account", "policy", copy=True),
    Attempt("policy_once_per_user", "policy", copy=True, prepare={"scope": "user", "end_user": "end_user"}),
    Attempt("policy_once_per_run", "policy", copy=True, prepare={"scope": "run", "run": "run"}),
    Attempt("policy_has_target", "policy", {"target_server": ""}),
    Attempt("api_key_role_known", "api_key", {"role": "owner"}),
    Attempt("delivery_status_known", "delivery", {"status": "lost", "next_retry_at": None}),
    Attempt("delivery_pending_has_a_time", "delivery", {"next_retry_at": None}),
    Attempt("delivery_pending_has_a_time", "delivery", {"status": "success"}),
    Attempt("ledger_seq_once", "entry", copy=True),
    Attempt("api_key_name_once_while_valid", "api_key", {"public_id": "other", "user": "spare"}, copy=True),
    Attempt("idempotency_key_once", "idempotency_key", copy=True),
]


@pytest.fixture
def world(make_round: Callable[..., Round], alice: User) -> World:
    round_ = make_round()
    run, server = round_.run, Server.objects.get()
    agent, account = run.agent, run.account
    tool = server.tools.first()
    event = Event.objects.filter(run=run).first()
    assert tool is not None
    assert event is not None
    end_user = end_users.end_user(account, "cust_1")
    assert end_user is not None
    return World(
        account=account,
        membership=Membership.objects.get(user=alice),
        end_user=end_user,
        server=server,
        tool=tool,
        tool_word=ToolWord.objects.create(tool=tool, said_by_name="ada"),
        seen_definition=SeenDefinition.objects.create(account=account, digest=tool.digest, name=tool.name),
        seen_address=SeenAddress.objects.create(account=account, identity="sha256:i", address="desk-server"),
        agent=agent,
        task=Task.objects.create(account=account, agent=agent, instructions="x"),
        run=run,
        turn=round_.turn,
        step=round_.step,
        toolcall=round_.step.call,
        round=round_,
        event=event,
        policy=Policy.objects.create(
            account=account, effect="allow", scope="account", target_server="desk", source="api",
            created_at=timezone.now(),
        ),
        api_key=keys.issue(account, "nightly", role=Role.OPERATOR).key,
        delivery=WebhookDelivery.objects.create(
            endpoint=WebhookEndpoint.objects.create(
                account=account, url="https://example.com/hook", secret="s" * 32
            ),
            run=run, event_type="run.started", event_id="e-1", body="{}", next_retry_at=OLD,
        ),
        entry=audit.note(account, alice, "policy.made", "policy 1"),
        idempotency_key=IdempotencyKey.objects.create(
            account=account, key="k", request_digest="sha256:d", turn=round_.turn
        ),
        spare=alice,
    )  # fmt: skip


def named_rows(world: World, fields: dict[str, Any]) -> dict[str, Any]:
    """Foreign keys are named by the row of the world that they shall point at."""
    return {
        name: getattr(world, value)
        if name in ("end_user", "run", "user") and isinstance(value, str)
        else value
        for name, value in fields.items()
    }


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_the_database_refuses(world: World, attempt: Attempt) -> None:
    row = getattr(world, attempt.row)
    kind = type(row)
    kind.objects.filter(pk=row.pk).update(**named_rows(world, attempt.prepare))
    row = kind.objects.get(pk=row.pk)

    spoil = _make_second if attempt.copy else _change
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        spoil(row, named_rows(world, attempt.fields))

    named = [attempt.constraint, attempt.or_else]
    assert any(_names(refused.value, kind, constraint) for constraint in named if constraint)


def _change(row: models.Model, fields: dict[str, Any]) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**fields)


def _make_second(row: models.Model, fields: dict[str, Any]) -> None:
    if "id" not in fields:
        row.pk = None
    for name, value in fields.items():
        setattr(row, name, value)
    if isinstance(row, Turn):
        row.pk = Turn().pk
    row._state.adding = True
    row.save(force_insert=True)


def _names(error: IntegrityError, kind: type[models.Model], constraint: str) -> bool:
    """Whether the error is about this constraint; SQLite names the columns of a unique one instead."""
    (found,) = (each for each in kind._meta.constraints if each.name == constraint)
    if not isinstance(found, models.UniqueConstraint):
        return constraint in str(error)
    columns = [kind._meta.get_field(name).column for name in found.fields]
    return constraint in str(error) or all(
        f"{kind._meta.db_table}.{column}" in str(error) for column in columns
    )


def _declared() -> Iterator[str]:
    for label in ("runs", "approvals"):
        for model in apps.get_app_config(label).get_models():
            yield from (constraint.name for constraint in model._meta.constraints)


def test_every_constraint_of_the_models_has_an_attempt() -> None:
    assert set(_declared()) == {attempt.constraint for attempt in ATTEMPTS}


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ("server", {"transport": "http", "entry": "", "url": "https://example.com"}),
        ("server", {"entry": "", "command": "demo-server"}),
        ("turn", {**FINISHED, "finished_at": OLD}),
        ("run", {**FINISHED, "wake_seq": 3, "seen_seq": 3}),
        ("round", ANSWERED),
        ("round", FAILED),
        ("policy", {"scope": "user", "end_user": "end_user"}),
        ("policy", {"scope": "run", "run": "run"}),
    ],
)
def test_the_database_takes_what_is_right(world: World, row: str, fields: dict[str, Any]) -> None:
    there = getattr(world, row)

    assert type(there).objects.filter(pk=there.pk).update(**named_rows(world, fields)) == 1


def test_a_second_round_may_wait_once_the_first_of_its_operation_is_answered(world: World) -> None:
    Round.objects.filter(pk=world.round.pk).update(**ANSWERED)
    _make_second(world.round, {"id": "b", "round_index": 1, "status": "pending"})

    assert Round.objects.count() == 2
