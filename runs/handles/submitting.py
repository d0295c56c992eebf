"""Recording a submission: account, servers, agent and run in one transaction. Runs in the store's writer thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from runs import control, planned, servers
from runs.agents import unknown_targets
from runs.canonical import digest
from runs.errors import ModelValidationError
from runs.handles.specs import AgentSpec, PlannedElicitation
from runs.handles.stores import PROGRAMS
from runs.harnesses import get_harness
from runs.local_tools import LOCAL
from runs.managed_input.checks import stored_response
from runs.models import Account, Agent, Server, Turn
from runs.planned import PlannedMatch
from runs.run_states import HumanInput, PermissionMode
from runs.servers import ServerValues


@dataclass(frozen=True, kw_only=True)
class Placement:
    """What a submission needs beside its spec: whose it is, its servers' addresses, who may be asked."""

    account: str | None
    """Slug of an account that exists; None for the programs' own."""
    addresses: Sequence[ServerValues | str]
    human_input: HumanInput


def submit(spec: AgentSpec, placement: Placement) -> str:
    """Record the run, make it due, and return the id of its execution.

    Raises ModelValidationError for a server, target or mode that cannot be used; nothing is stored then.
    """
    account = _account(placement.account)
    found = [_server(account, where) for where in placement.addresses]
    _check_targets(spec, found)
    run = control.create_run(
        _agent(account, spec, found),
        control.Submission(
            message=spec.prompt,
            mode=spec.mode,
            human_input=placement.human_input,
            user_id=spec.user_id,
            tools=spec.tools,
            tools_approve=spec.tools is not None,
            metadata=spec.metadata,
        ),
    )
    turn = run.turns.get()
    if spec.elicitations:
        Turn.objects.filter(pk=turn.pk).update(planned=[_entry(one) for one in spec.elicitations])
    return str(turn.pk)


def _account(slug: str | None) -> Account:
    if slug is None:
        return Account.objects.get_or_create(slug=PROGRAMS, defaults={"name": "Python"})[0]
    account = Account.objects.filter(slug=slug).first()
    if account is None:
        raise ModelValidationError(
            f"There is no account {slug!r}. Make it with manage.py account, or name another."
        )
    return account


def _server(account: Account, where: ServerValues | str) -> Server:
    if isinstance(where, ServerValues):
        return servers.put(account, where)
    server = Server.objects.filter(account=account, name=where).first()
    if server is None:
        raise ModelValidationError(
            f"There is no server {where!r} in {account.name}. Pass a StdioServer or HttpServer."
        )
    return server


def _check_targets(spec: AgentSpec, found: Sequence[Server]) -> None:
    """What the definition and the selection name must be there (C48)."""
    names = {server.name for server in found} | {LOCAL}
    unknown = sorted({target.partition(":")[0] for target in spec.tools or ()} - names)
    if unknown:
        raise ModelValidationError(
            f"The tool selection names servers that the agent lacks: {', '.join(unknown)}."
        )
    mistakes = unknown_targets(spec.definition, spec.targets, found)
    if mistakes:
        raise ModelValidationError("; ".join(mistakes[:5]), details={"mistakes": mistakes})


def _agent(account: Account, spec: AgentSpec, found: Iterable[Server]) -> Agent:
    """The agent row that says exactly this. An agent is never changed for a submission: live runs may use it.

    The first one takes the plain name, another of the same name has a part of its digest behind it.
    """
    wanted = {
        "harness": spec.harness,
        "instructions": spec.instructions,
        "definition": _plain(spec.definition),
    }
    ids = sorted(server.pk for server in found)
    suffix = digest([wanted, ids]).removeprefix("sha256:")[:12]
    for name in (spec.name[:120], f"{spec.name[:100]} ({suffix})"):
        agent = Agent.objects.filter(account=account, name=name).first()
        if agent is None:
            agent = Agent.objects.create(
                account=account, name=name, default_mode=PermissionMode.AUTONOMOUS.value, **wanted
            )
            agent.servers.set(ids)
            return agent
        if _says(agent, wanted, ids):
            return agent
    raise ModelValidationError(f"The agent “{name}” was changed by somebody. Give yours another name.")


def _says(agent: Agent, wanted: Mapping[str, Any], ids: Sequence[int]) -> bool:
    same = all(digest(getattr(agent, field)) == digest(value) for field, value in wanted.items())
    return same and sorted(agent.servers.values_list("pk", flat=True)) == list(ids)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _entry(one: PlannedElicitation) -> dict[str, Any]:
    match = {name: getattr(one, name) for name in get_args(PlannedMatch)}
    return planned.entry(match, stored_response(one.response))


def local_tools_of(spec: AgentSpec) -> set[str]:
    """The local tools that the definition or the selection names."""
    return local_names({*spec.targets, *(spec.tools or ())})


def local_names(targets: Iterable[str]) -> set[str]:
    """The names after `local:` among these targets."""
    return {target.removeprefix(f"{LOCAL}:") for target in targets if target.startswith(f"{LOCAL}:")}


def needs(turn: Turn) -> tuple[set[str], set[str]]:
    """The stdio entries and the local tools that a turn may yet call."""
    entries = set(turn.run.agent.servers.exclude(entry="").values_list("entry", flat=True))
    return entries, local_names(get_harness(turn.harness).targets(turn.definition))
