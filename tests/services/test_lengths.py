"""What is too long for its column is refused in words that say the limit, before any database is asked.

SQLite would store it and PostgreSQL would fail. Every text column of ours is in one of the two tables below: those that
words from outside can reach, each with the way in, and those that only we fill.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import models
from django.test import Client

from approvals import decisions, policies
from approvals.facts import Effect, Scope
from approvals.gate import PolicyGate
from approvals.models import Policy, Source
from approvals.rules import Rule
from runs import agents, control, end_users, idempotency, keys, rounds, servers, tasks
from runs.access import Actor, actor_for
from runs.engines.driver import Driver
from runs.errors import M3Error
from runs.harnesses import get_harness
from runs.managed_input import DjangoManagedInputStore, PendingElicitationRound
from runs.mcp_client import ToolDefinition
from runs.models import Account, Agent, Role, Round, Run, Server, User
from runs.round_rows import Decider
from runs.servers import ServerValues
from runs.steps import Call, Say
from runs.tool_rows import store_tools
from runs.webhooks import endpoints
from tests.services.managed_input.samples import HOLDER, opened, pending

pytestmark = pytest.mark.django_db

STEPS = '{"steps": [{"say": "Hello."}]}'
ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}


@dataclass
class Stage:
    """What the ways in need."""

    account: Account
    actor: Actor
    client: Client
    agent: Agent
    make_run: Callable[..., Run]
    make_round: Callable[..., Round]

    def post(self, path: str, body: dict[str, Any]) -> None:
        """Raise what the API says of a body that it refuses."""
        answer = self.client.post(f"/api/v2/{path}", body, content_type="application/json")
        assert answer.status_code == 422, answer.content
        raise M3Error(str(answer.json()["error"]["details"]["fields"]))

    def rule(self, target: str) -> Rule:
        return Rule(account=self.account, effect=Effect.DENY, scope=Scope.ACCOUNT, target=target)

    def round_of_program(self, round_id: str = "r1", **changed: str) -> None:
        """Open a round through the store; `changed` are parts of the round, or of how it is held."""
        execution = str(self.make_run().turns.get().pk)
        of_round = {
            name: changed.pop(name) for name in PendingElicitationRound.model_fields.keys() & changed.keys()
        }
        DjangoManagedInputStore().create_round(
            pending(execution, round_id, **of_round),
            round_index=0,
            round_limit=10,
            lease_seconds=60,
            **{**HOLDER, **changed},
        )

    def failed_round(self, code: str) -> None:
        execution, store = str(self.make_run().turns.get().pk), DjangoManagedInputStore()
        opened(store, execution, "r2")
        store.fail(execution, "r2", code=code, message="no", **HOLDER)

    def answered_with(self, key: str) -> None:
        round_ = self.make_round()
        rounds.answer(round_.pk, ALLOW, decider=Decider(user=None, via="page"), idempotency_key=key)

    def playbook(self, step: dict[str, Any]) -> None:
        """Raise what the harness says of a playbook that it refuses."""
        mistakes = get_harness("playbook").validate({"steps": [step]})
        assert mistakes
        raise M3Error(mistakes[0])


Way = Callable[[Stage, str], Any]


def _agent(**fields: str) -> Way:
    return lambda at, text: agents.save(
        at.actor,
        None,
        agents.AgentValues(**{"name": "A", "definition": STEPS, **dict.fromkeys(fields, text)}),
    )


REACHED: dict[str, Way] = {
    "account.name": lambda _, text: call_command("account", name=text, admin="new"),
    "account.elicitation_timeout": lambda at, text: Account(
        name="A", slug="a", elicitation_timeout="0" * len(text) + "5m"
    ).full_clean(),
    "user.username": lambda _, text: call_command("account", name="New", admin=text),
    "enduser.user_id": lambda at, text: end_users.end_user(at.account, text),
    "enduser.name": lambda at, text: at.post("users/", {"user_id": "u", "name": text}),
    "enduser.email": lambda at, text: at.post("users/", {"user_id": "u", "email": f"{text}@example.com"}),
    "enduser.company": lambda at, text: at.post("users/", {"user_id": "u", "company": text}),
    "agent.name": _agent(name=""),
    "agent.harness": _agent(harness=""),
    "agent.elicitation_timeout": lambda at, text: agents.save(
        at.actor,
        None,
        agents.AgentValues(name="A", definition=STEPS, elicitation_timeout="0" * (len(text) - 2) + "5m"),
    ),
    "task.name": lambda at, text: tasks.create(at.actor, at.agent.pk, {"name": text, "instructions": "go"}),
    "apikey.name": lambda at, text: keys.create(at.actor, text),
    "server.name": lambda at, text: servers.register(at.actor, ServerValues(name=text, entry="desk")),
    "server.entry": lambda at, text: servers.register(at.actor, ServerValues(name="s", entry=text)),
    "server.command": lambda at, text: servers.register(at.actor, ServerValues(name="s", command=text)),
    "server.url": lambda at, text: servers.register(
        at.actor, ServerValues(name="s", url=f"https://example.com/{text}")
    ),
    "policy.target_server": lambda at, text: policies.grant(
        at.actor, at.rule(text), source=Source.API, confirmed=True
    ),
    "policy.target_tool": lambda at, text: policies.grant(
        at.actor, at.rule(f"desk:{text}"), source=Source.API, confirmed=True
    ),
    "policy.note": lambda at, text: policies.grant(
        at.actor, at.rule("desk:refund"), source=Source.API, confirmed=True, note=text
    ),
    "policy.suspended_reason": lambda at, text: policies.suspend(
        at.actor,
        Policy.objects.create(
            account=at.account, effect="allow", scope="account", source="api", target_server="desk"
        ).pk,
        text,
    ),
    "idempotencykey.key": lambda at, text: idempotency.once(
        at.account, text, "digest", lambda: at.make_run().turns.get()
    ),
    "round.id": lambda at, text: at.round_of_program(round_id=text),
    "round.logical_operation_id": lambda at, text: at.round_of_program(logical_operation_id=text),
    "round.server_name": lambda at, text: at.round_of_program(server=text),
    "round.operation_name": lambda at, text: at.round_of_program(operation_name=text),
    "round.lease_owner": lambda at, text: at.round_of_program(owner_id=text),
    "round.lease_token": lambda at, text: at.round_of_program(lease_token=text),
    "round.delivery_idempotency_key": lambda at, text: at.round_of_program(delivery_idempotency_key=text),
    "round.harness_session_id": lambda at, text: at.round_of_program(harness_session_id=text),
    "round.session_id": lambda at, text: at.round_of_program(session_id=text),
    "round.harness_turn_id": lambda at, text: at.round_of_program(turn_id=text),
    "round.failure_code": lambda at, text: at.failed_round(text),
    "round.response_idempotency_key": lambda at, text: at.answered_with(text),
    "webhookendpoint.url": lambda at, text: endpoints.create(at.actor, f"https://example.com/{text}"),
    "toolcall.server_name": lambda at, text: at.playbook({"call": f"{text}:tool"}),
    "toolcall.name": lambda at, text: at.playbook({"call": f"desk:{text}"}),
    "step.bind": lambda at, text: at.playbook({"call": "desk:tool", "as": text}),
}
"""{model.column: a way in for a text that is one character too long}."""

CUT: dict[str, str] = {
    "server.server_title": "what a server calls itself is shown and never looked up",
    "server.protocol_version": "one of those that both sides know",
    "tool.title": "as the server's",
    "seendefinition.title": "as the tool's",
    "tool.name": "a tool that cannot be named is left out, and the page says so",
    "seendefinition.name": "of a tool that could be named",
}
"""Texts of servers: nobody is there to be refused."""

OURS = {
    *("account.slug", "run.error_code", "turn.error_code", "turn.harness", "step.path", "toolcall.operation"),
    *("toolcall.asked_digest", "toolcall.executed_digest", "toolcall.definition_digest", "tool.digest"),
    *("run.pin", "run.lease_owner", "run.event_head", "event.type", "event.actor_name", "event.previous"),
    *("event.hash", "ledger.head", "ledgerentry.action", "ledgerentry.subject", "ledgerentry.actor_name"),
    *("ledgerentry.previous", "ledgerentry.hash", "seendefinition.digest", "seenaddress.identity"),
    *("toolword.said_by_name", "apikey.public_id", "apikey.secret_digest", "server.identity"),
    *("idempotencykey.request_digest", "webhookendpoint.secret", "webhookdelivery.event_type"),
    *("webhookdelivery.event_id", "round.operation_kind", "round.shown_digest", "round.decided_via"),
    *("policy.condition_digest", "policy.match_key", "policy.pinned_identity"),
    *(
        "workerhost.id",
        "leftsession.host",
        "leftsession.keeper",
        "leftsession.operation_id",
        "secretproof.proof",
    ),
    *("user.password", "user.first_name", "user.last_name", "user.email"),
}
"""Digests, words of ours, and names that were checked where they came in."""


def columns() -> Iterator[tuple[str, int]]:
    for app in ("runs", "approvals"):
        for model in apps.get_app_config(app).get_models():
            for field in model._meta.concrete_fields:
                if isinstance(field, models.CharField) and not field.choices and field.max_length:
                    yield f"{model._meta.model_name}.{field.name}", field.max_length


LIMITS = dict(columns())


@pytest.fixture
def stage(
    account: Account,
    ada: User,
    agent: Agent,
    client_for: Callable[[User], Client],
    make_run: Callable[..., Run],
    make_round: Callable[..., Round],
) -> Stage:
    return Stage(account, actor_for(ada), client_for(ada), agent, make_run, make_round)


def test_every_text_column_is_in_one_of_the_tables() -> None:
    known = [*REACHED, *CUT, *OURS]

    assert sorted(LIMITS) == sorted(known)


@pytest.mark.parametrize("column", sorted(REACHED))
def test_a_text_that_is_too_long_is_refused_and_nothing_is_stored(
    stage: Stage, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("M3_ADMIN_PASSWORD", "correct horse battery staple")
    limit = LIMITS[column]

    with pytest.raises((M3Error, ValidationError, CommandError)) as refused:
        REACHED[column](stage, "x" * (limit + 1))

    model = apps.get_model("approvals" if column.startswith("policy") else "runs", column.partition(".")[0])
    assert not [
        row
        for row in model.objects.values_list(column.partition(".")[2], flat=True)
        if row and len(row) > limit
    ]
    told = getattr(refused.value, "message", None) or str(refused.value)
    assert _says_the_limit(told, limit) or column in WITHOUT_LIMIT, told


WITHOUT_LIMIT = {
    "account.elicitation_timeout": "no time limit is that long; the sentence says how one is written",
    "agent.elicitation_timeout": "the same",
    "agent.harness": "there is no such harness",
    "server.entry": "there is no such entry",
    "server.command": "commands are for demo mode",
    "enduser.email": "no address is that long",
    "policy.target_server": "the sentence says how a target is written",
    "policy.target_tool": "the same",
    "toolcall.name": "a target as a whole has a smaller limit",
    "step.bind": "a name has a smaller limit",
}
"""Where the refusal has something better to say than the number of the column."""


def _says_the_limit(told: str, limit: int) -> bool:
    return str(limit) in told or f"{limit:,}" in told


def test_tools_whose_names_are_too_long_are_left_out_and_long_titles_are_cut(desk: Server) -> None:
    def tool(name: str) -> ToolDefinition:
        return ToolDefinition(
            name=name,
            title="t" * 300,
            description="",
            input_schema={"type": "object"},
            output_schema=None,
            annotations={},
            digest=f"sha256:{name[:8]}",
        )

    problems = store_tools(desk, [tool("n" * 201), tool("fits")])

    assert len(problems) == 1
    assert [len(row.title) for row in desk.tools.filter(present=True)] == [200]


@pytest.mark.parametrize(
    "propose",
    [
        lambda: Say(path="x" * 201, text="hi"),
        lambda: Say(path="a\x00", text="hi"),
        lambda: Call(path="p", bind="x" * 101, target="desk:t", args={}),
        lambda: Call(path="p", target=f"{'x' * 61}:t", args={}),
        lambda: Call(path="p", target=f"desk:{'x' * 2001}", args={}),
        lambda: Call(path="p", target="desk:a\x00b", args={}),
    ],
)
def test_a_harness_cannot_propose_what_the_journal_could_not_keep(propose: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="printable characters"):
        propose()


def test_the_name_of_a_worker_fits_wherever_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="x" * 64))
    monkeypatch.setattr(os, "getpid", lambda: 4_194_304)

    assert len(Driver(PolicyGate(), 1).owner) <= LIMITS["run.lease_owner"]


def test_the_longest_texts_that_are_allowed_are_kept(stage: Stage) -> None:
    key = keys.create(stage.actor, "k" * 60, role=Role.VIEWER).key
    run = control.create_run(stage.agent, control.Submission(message="go", user_id="u" * 200))
    round_ = stage.make_round()
    decided = decisions.decide(stage.actor, round_.pk, ALLOW, idempotency_key="i" * 200)

    assert (len(key.name), len(run.end_user.user_id), len(decided.response_idempotency_key or "")) == (  # type: ignore[union-attr]
        60,
        200,
        200,
    )
