"""Executions in the installation's own database: its account, its pages, its people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from approvals import decisions
from runs import database, db
from runs.access import actor_for
from runs.handles import (
    ExecutionStore,
    ManagedInputConflict,
    MCPTestKit,
    ModelValidationError,
    NotFound,
    StdioServer,
)
from runs.models import Account, Run, User
from tests.handles.conftest import ADDRESS, agent, pending_of
from tests.mcp.bindings import PATIENCE

Parcels = Callable[..., StdioServer]


@pytest.fixture
def installation(transactional_db: None) -> Iterator[None]:
    yield
    db.close_threads()
    database.DEFAULT.bindings.clear()


def test_a_person_of_the_account_answers_what_a_program_started(
    installation: None, account: Account, alice: User, parcels: Parcels
) -> None:
    with MCPTestKit(store=ExecutionStore(account="acme"), env={}) as kit:
        handle = agent(kit).submit("Book", server=parcels(), human_input="managed")
        round_id = pending_of(handle).round_id
        response = {"action": "accept", "content": {"street": "1 Main Street", "city": "Pune"}}
        decisions.decide(actor_for(alice), round_id, {"shipping_address": response}, idempotency_key="page")
        with pytest.raises(ManagedInputConflict, match="alice"):
            handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="late")
        assert handle.result(PATIENCE).output == "Pune"
    assert Run.objects.get().account == account


def test_programs_have_an_account_of_their_own_unless_one_is_named(installation: None) -> None:
    with MCPTestKit(store=ExecutionStore(), env={}) as kit:
        agent(kit, {"finish": "ok"}).submit("Go").result(PATIENCE)
    assert Run.objects.get().account.slug == "python"


def test_an_execution_of_another_account_is_not_there(installation: None, account: Account) -> None:
    with MCPTestKit(store=ExecutionStore(), env={}) as kit:
        mine = agent(kit, {"finish": "ok"}).submit("Go")
        mine.result(PATIENCE)
    with (
        MCPTestKit(store=ExecutionStore(account="acme"), env={}) as kit,
        pytest.raises(NotFound),
    ):
        kit.execution(mine.execution_id)


def test_an_account_or_database_that_is_not_there_is_refused(installation: None) -> None:
    refused = pytest.raises(ModelValidationError, match="no account 'acme'")
    with MCPTestKit(store=ExecutionStore(account="acme"), env={}) as kit, refused:
        agent(kit, {"finish": "ok"}).submit("Go")
    with pytest.raises(ModelValidationError, match="no database"):
        ExecutionStore("other")


def test_a_database_of_another_version_is_refused(
    installation: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "is_up_to_date", lambda: False)
    with pytest.raises(ModelValidationError, match=r"manage\.py migrate"):
        MCPTestKit(store=ExecutionStore()).__enter__()
