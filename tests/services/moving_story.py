"""An account with a run in every state, and what becomes of its runs after it has moved. Three programs:

`python -m tests.services.moving_story begin FILE` fills an installation with the help of a real worker, exports it, and
prints what it made; `end FILE BACK KEY` imports it elsewhere, exports a copy at once, starts a worker there, answers
everything that waits, twice, and prints how it all ended; `back BACK` imports the copy and opens it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
if __name__ == "__main__":
    django.setup()

from approvals import decisions, policies
from approvals.facts import Effect, Scope
from approvals.gate import PolicyGate
from approvals.models import Source
from approvals.remembering import Remember
from approvals.rules import Rule
from runs import access, binding, db, idempotency, keys, lease, tool_words
from runs.engines.in_process import InProcess
from runs.errors import ManagedInputConflict
from runs.models import Account, EndUser, Role, Round, Run, Server, Tool, User
from runs.webhooks import endpoints
from tests.mcp.bindings import LEGACY
from tests.people import person
from tests.worker.conftest import Desk

MAIL = {"to": "ann@example.com", "subject": "Hello", "body": "Text"}
ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}


def send(subject: str) -> dict[str, Any]:
    return {"call": "desk:send_email", "args": {**MAIL, "subject": subject}, "as": "m"}


def question(text: str) -> dict[str, Any]:
    return {"question": text, "header": text[:8], "options": [{"label": "one"}, {"label": "two"}]}


ASK = {"ask": {"questions": [question("Which?")]}, "as": "a"}
BOTH = {"ask": {"questions": [question("Which?"), question("And then?")]}, "as": "a"}
STORIES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "approval": ([send("approval"), {"finish": "{{ m.status }}"}], "desk", "approval"),
    "form": (
        [
            {"call": "shipping:book_shipment", "args": {"item": "Lamp"}, "as": "b"},
            {"finish": "{{ b.status }}"},
        ],
        "shipping",
        "autonomous",
    ),
    "question": (
        [BOTH, {"finish": '{{ a.answers."Which?" }} {{ a.answers."And then?" }}'}],
        "desk",
        "approval",
    ),
    "plan": ([{"plan": ["1. Send"], "as": "p"}, {"finish": "{{ p.status }}"}], "desk", "plan"),
    "outcome": (
        [{"call": "forgetful:slow", "args": {"tag": "move"}, "as": "r"}, {"finish": "{{ r.status }}"}],
        "forgetful",
        "autonomous",
    ),
    "session": ([{"call": "old:ask_in_turn", "args": {"times": 1}, "as": "r"}], "old", "autonomous"),
    "sleep": ([{"sleep": 8}, {"finish": "rested"}], "desk", "autonomous"),
    "long sleep": ([{"sleep": 90000}, {"finish": "rested"}], "desk", "autonomous"),
    "remembered": ([send("first"), ASK, send("second"), {"finish": "{{ m.status }}"}], "desk", "approval"),
    "denied": ([send("denied"), {"finish": "{{ m.status }}"}], "desk", "approval"),
    "stopped": ([{"fail": "No."}], "desk", "autonomous"),
}
"""By the name of the agent: its steps, its server, its mode."""

WAITS = {
    "approval": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
    "elicitation": {
        "shipping_address": {"action": "accept", "content": {"street": "1 Main Street", "city": "Pune"}}
    },
    "plan": {"plan": {"action": "accept", "content": {"decision": "approve"}}},
    "outcome": {"outcome": {"action": "accept", "content": {"decision": "happened"}}},
}
EXOTIC = {"z": 1, "a": [1.0, 1, 12345678901234567890123], "\x00": "NUL \x00, half \ud800, mark \ufdd0, é"}


# --- before -----------------------------------------------------------------------------------------------


async def begin() -> dict[str, Any]:
    account = await db.write(_people)
    async with working(account) as desk:
        runs = {name: await _start(desk, name) for name in STORIES if name != "sleep"}
        await desk.eventually(_slow_is_at_work, "the slow call")
        await _decide(desk, runs)
        for name in ("approval", "form", "question", "plan", "session", "remembered"):
            await desk.pending(runs[name])
    # The worker stopped in the middle of the slow call; the next one asks what became of it.
    async with working(account) as desk:
        await desk.pending(runs["outcome"], "outcome")
        runs["sleep"] = await _start(desk, "sleep")
        await desk.eventually(lambda: Run.objects.filter(next_at__isnull=False).count() == 2, "the sleepers")
    return await db.write(_rules_and_keys, runs)


async def _start(desk: Desk, name: str) -> Run:
    steps, server, mode = STORIES[name]
    return await desk.start(steps, server=server, mode=mode, name=name, user_id="cust_7")


def _people() -> Account:
    account = Account.objects.create(name="Acme", slug="acme")
    person("alice", account, Role.OPERATOR)
    person("ada", account, Role.ADMIN)
    person("gone", account, Role.OPERATOR)
    old = Server(account=account, name="old", transport="stdio", entry="forgetful", negotiated=LEGACY)
    old.identity = binding.identity_of(old)
    old.save()
    Server.objects.create(
        account=account,
        name="away",
        transport="http",
        url="http://127.0.0.1:9/mcp",
        headers={"X-Key": "hush é"},
    )
    actor = access.actor_for(User.objects.get(username="ada"))
    endpoints.create(
        actor, "http://127.0.0.1:9/hook", ["run.completed", "run.awaiting_input"], user_id="cust_7"
    )
    return account


def _slow_is_at_work() -> bool:
    effects = Path(os.environ["M3_TEST_EFFECTS"])
    return effects.exists() and '"slow started"' in effects.read_text()


async def _decide(desk: Desk, runs: dict[str, Run]) -> None:
    (first,) = await desk.pending(runs["remembered"], "approval")
    await desk.answer(first, ALLOW, remember=Remember(scope="run"))
    await desk.pending(runs["remembered"], "question")
    (denied,) = await desk.pending(runs["denied"])
    await desk.accept(denied, decision="deny", feedback="No.")
    await desk.finished(runs["denied"])
    await desk.finished(runs["stopped"])
    (asked,) = await desk.pending(runs["question"])
    draft = {"action": "accept", "content": {"selected": [1]}}
    await db.read(_draft, desk.person, asked.pk, draft)


def _draft(user: User, round_id: str, draft: dict[str, Any]) -> None:
    decisions.save_draft(access.actor_for(user), round_id, "q0", draft)


def _rules_and_keys(runs: dict[str, Run]) -> dict[str, Any]:
    account = Account.objects.get()
    ada = access.actor_for(User.objects.get(username="ada"))
    user = EndUser.objects.get(user_id="cust_7")
    allow = Rule(
        account=account, effect=Effect.ALLOW, scope=Scope.USER, target="desk:get_customer", end_user=user
    )
    policies.suspend(ada, policies.grant(None, allow, source=Source.API).pk, "Not needed now.")
    Run.objects.filter(pk=runs["denied"].pk).update(metadata=EXOTIC)
    idempotency.once(account, "key of a request", "digest", lambda: runs["denied"].turns.get())
    tool = Tool.objects.get(name="send_email")
    words = {"idempotent": False}
    tool_words.change(ada, tool.server_id, tool.pk, words, via="page")
    gone = User.objects.get(username="gone")
    Round.objects.filter(run=runs["denied"]).update(decided_by=gone)
    gone.memberships.all().delete()
    made = keys.issue(account, "shop", role=Role.OPERATOR)
    return {"key": made.secret, "runs": {name: run.pk for name, run in runs.items()}}


# --- after ------------------------------------------------------------------------------------------------


async def end(key: str) -> dict[str, Any]:
    account = await db.read(Account.objects.get, slug="acme")
    told: dict[str, Any] = {"refused": 0}
    async with working(account) as desk:
        unfinished = await db.read(lambda: list(Run.objects.live().select_related("agent")))
        for run in unfinished:
            if run.agent.name not in ("long sleep", "sleep", "session"):
                for round_ in await desk.pending(run):
                    await _answer_twice(desk, round_, told)
        for run in unfinished:
            if run.agent.name != "long sleep":
                await desk.finished(run)
    found = await db.read(keys.find, key)
    return {**told, "runs": await db.read(_ends), "key": found.name if found else None}


async def _answer_twice(desk: Desk, round_: Round, told: dict[str, Any]) -> None:
    if round_.kind == "question":
        picked = {"action": "accept", "content": {"selected": [0]}}
        responses = dict.fromkeys(round_.requests, picked) | dict(round_.drafts)
    else:
        responses = dict(WAITS[round_.kind])
    await desk.answer(round_, responses)
    try:
        await desk.answer(round_, responses, idempotency_key="somebody else's")
    except ManagedInputConflict:
        told["refused"] += 1


def _ends() -> dict[str, Any]:
    fields = ("agent__name", "status", "output", "error_code")
    return {name: rest for name, *rest in Run.objects.values_list(*fields)}


@contextlib.asynccontextmanager
async def working(account: Account) -> Any:
    """A worker as `manage.py up` starts one, and alice at the desk."""
    engine = InProcess(PolicyGate())
    engine.lock()
    task = asyncio.create_task(engine.serve())
    try:
        yield Desk(account, await db.read(User.objects.get, username="alice"), engine, "")
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await db.write(lease.take_over)
        engine.unlock()


def command(*words: str) -> str:
    said = io.StringIO()
    call_command(*words, stdout=said)
    return said.getvalue()


def main(which: str, file: str, back: str = "", key: str = "") -> dict[str, Any]:
    if which == "begin":
        command("migrate", "-v0")
        return {**asyncio.run(begin()), "said": command("export", file)}
    said = command("import", file)
    if which == "end":
        command("export", "--copy", back)
        told = asyncio.run(end(key))
    else:
        told = {"opened": command("reopen", "--nowhere-else")}
    return {**told, "said": said, "verified": command("audit", "verify")}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
