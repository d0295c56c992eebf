"""Fixtures that every kind of test uses; see `tests.people` for who is who."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import connections
from django.test import Client

from runs import access, db, engines
from runs.binding import identity_of
from runs.canonical import digest
from runs.control import Submission, create_run
from runs.models import Account, Agent, Role, Round, Run, Server, Step, Tool, ToolCall, User
from runs.requests import approval, outcome, plan, questions
from runs.round_states import RoundKind
from runs.rounds import Opening, open_round
from runs.run_states import HumanInput, TurnStatus
from runs.turns import set_status
from tests.people import person

pytest_plugins = ["tests.requirements"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """A database of its own for every test process, so that two test runs never meet in one."""
    file = str(tmp_path_factory.mktemp("db") / "test.sqlite3")
    name = file if connections["default"].vendor == "sqlite" else f"test_m3_{uuid.uuid4().hex}"
    connections["default"].settings_dict["TEST"]["NAME"] = name


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """PostgreSQL drops no database to which a thread is still connected; a loop's threads outlive their tests."""
    yield
    if connections["default"].vendor == "postgresql":
        with django_db_blocker.unblock(), connections["default"].cursor() as cursor:
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            cursor.execute(f"SELECT pg_terminate_backend(pid) {others}")


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody attacks the passwords of a test; real hashing would be most of its time."""
    monkeypatch.setattr(settings, "PASSWORD_HASHERS", ["django.contrib.auth.hashers.MD5PasswordHasher"])


@pytest.fixture(autouse=True)
def own_settings(settings: LazySettings) -> None:
    """What a test changes in the installation's settings is gone after it, also what it changes in place."""
    settings.M3 = dataclasses.replace(settings.M3)


@pytest.fixture(autouse=True)
def no_engine() -> Iterator[None]:
    """A test that wants a worker says so; nothing wakes one by accident."""
    engines.use(None)
    yield
    engines.use(None)


@pytest.fixture
def engine_threads() -> Iterator[None]:
    """For tests that cross `runs.db`: its threads give their connections back before the database goes."""
    yield
    db.close_threads()


@pytest.fixture
def account(db: None) -> Account:
    return Account.objects.create(name="Acme", slug="acme")


@pytest.fixture
def other_account(db: None) -> Account:
    return Account.objects.create(name="Globex", slug="globex")


@pytest.fixture
def alice(account: Account) -> User:
    return person("alice", account, Role.OPERATOR)


@pytest.fixture
def bob(account: Account) -> User:
    return person("bob", account, Role.OPERATOR)


@pytest.fixture
def ada(account: Account) -> User:
    return person("ada", account, Role.ADMIN)


@pytest.fixture
def vera(account: Account) -> User:
    return person("vera", account, Role.VIEWER)


@pytest.fixture
def otto(other_account: Account) -> User:
    return person("otto", other_account, Role.OPERATOR)


@pytest.fixture
def acting() -> Callable[[User], access.Actor]:
    return access.actor_for


@pytest.fixture
def client_for() -> Callable[[User], Client]:
    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def desk(account: Account, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server row with three tools and its entry in the host's list; no process stands behind it."""
    monkeypatch.setitem(settings.M3.stdio_servers, "desk", {"command": "desk-server"})
    server = Server.objects.create(
        account=account, name="desk", transport="stdio", entry="desk", trusted=True
    )
    server.identity = identity_of(server)
    server.save()
    for position, (name, hints) in enumerate(
        [("send_email", {}), ("get_customer", {"readOnlyHint": True}), ("refund", {"destructiveHint": True})]
    ):
        schema = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}}
        Tool.objects.create(
            server=server,
            name=name,
            description=f"Does {name}.",
            input_schema=schema,
            annotations=hints,
            digest=digest([name, schema]),
            position=position,
        )
    return server


@pytest.fixture
def agent(account: Account, desk: Server) -> Agent:
    agent = Agent.objects.create(
        account=account,
        name="Customer success",
        default_mode="approval",
        definition={"steps": [{"say": "Hello."}]},
    )
    agent.servers.add(desk)
    return agent


@pytest.fixture
def make_run(agent: Agent) -> Callable[..., Run]:
    def make(message: str = "Send the update", **fields: Any) -> Run:
        return create_run(agent, Submission(message=message, human_input=HumanInput.MANAGED, **fields))

    return make


@pytest.fixture
def make_round(make_run: Callable[..., Run]) -> Callable[..., Round]:
    """A pending round of any kind on a real run, as the worker stores it; `context` overrides facts of the card."""

    def make(
        kind: str = "approval",
        *,
        run: Run | None = None,
        requests: dict[str, Any] | None = None,
        **context: Any,
    ) -> Round:
        run = run or make_run()
        turn = run.turns.get()
        set_status(run, turn, TurnStatus.RUNNING_TURN) if turn.status == TurnStatus.QUEUED else None
        seq = run.steps.count() + 1
        step_kind = {"question": "ask", "plan": "plan"}.get(kind, "call")
        step = Step.objects.create(
            run=run, turn=turn, seq=seq, kind=step_kind, path=f"steps.{seq}", params={}
        )
        facts = {**_context(kind), **context}
        if step_kind == "call":
            arguments = facts.get("arguments", {})
            ToolCall.objects.create(
                step=step,
                server=Server.objects.filter(account=run.account, name="desk").first(),
                server_name="desk",
                operation="tool",
                name=facts.get("tool", "desk:send_email").split(":", 1)[1],
                asked=arguments,
                asked_digest=digest(arguments),
            )
        shown = facts.get("arguments") if kind == "approval" else facts.get("text")
        opening = Opening(
            kind=RoundKind(kind),
            operation_id=f"{kind}:{step.seq}",
            requests=requests or _requests(kind, facts),
            context=facts,
            shown_digest=digest(shown) if shown is not None else "",
        )
        return open_round(run, turn, step, opening, deadline=None)

    return make


def _context(kind: str) -> dict[str, Any]:
    tool = {"tool": "desk:send_email", "server_address": "stdio entry desk", "mode": "approval"}
    if kind == "approval":
        verdict = {
            "effect": "ask",
            "code": "default_ask",
            "reason": "No policy covers desk:send_email.",
            "risk": "write",
            "rule_id": None,
            "remember": ["run", "account"],
            "remember_preselected": False,
        }
        arguments = {"to": "ann@example.com", "subject": "Weekly update", "amount": 20}
        schema = {
            "type": "object",
            "properties": {
                "to": {"type": "string"},
                "subject": {"type": "string"},
                "amount": {"type": "number"},
            },
        }
        return {
            **tool,
            "title": "Send e-mail",
            "description": "Sends an e-mail.",
            "arguments": arguments,
            "input_schema": schema,
            "verdict": verdict,
            "last_allowed": None,
        }
    if kind == "question":
        options = [{"label": "enterprise", "description": "Large orgs"}, {"label": "mid-market"}]
        question = {
            "question": "Which segment?",
            "header": "Segment",
            "multiSelect": False,
            "options": options,
        }
        return {"questions": [question], "mode": "approval"}
    if kind == "plan":
        return {"text": "1. Draft\n2. Send", "revision": 0, "feedback": None, "mode": "plan"}
    if kind == "outcome":
        return {**tool, "arguments": {}, "reason": "The worker died while the call was under way."}
    return tool


def _requests(kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    if kind == "approval":
        return approval("Allow desk:send_email?")
    if kind == "question":
        return questions(facts["questions"])
    if kind == "plan":
        return plan(facts["text"])
    if kind == "outcome":
        return outcome("What became of desk:send_email?")
    schema = {
        "type": "object",
        "properties": {"street": {"type": "string", "minLength": 1}},
        "required": ["street"],
    }
    request = {
        "request_key": "shipping_address",
        "mode": "form",
        "message": "Where to?",
        "requested_schema": schema,
    }
    return {"shipping_address": request}
