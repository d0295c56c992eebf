"""What admins do with agents. A wrong playbook is refused when saved, with the place of every mistake."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from django.db import transaction
from django.db.models import ProtectedError

from runs import audit, strict_json
from runs.access import Actor, get, visible
from runs.canonical import digest
from runs.durations import parse_timeout
from runs.end_users import end_user
from runs.errors import ModelValidationError, StateConflict
from runs.harnesses import get_harness
from runs.local_tools import LOCAL
from runs.models import Account, Agent, Role, Server, Tool
from runs.models.exact import is_line
from runs.run_states import PermissionMode

MAX_DEFINITION = 200_000
"""Characters of a definition's JSON text."""

MAX_INSTRUCTIONS = 50_000
MAX_MISTAKES = 50
"""Mistakes that one refusal lists; the rest are counted."""


@dataclass(frozen=True, kw_only=True)
class AgentValues:
    """An agent as a form or an API call describes it; `definition` is JSON text as typed.

    `metadata` None keeps what is stored. `user_id` counts when the agent is made: the only end user for whom it runs.
    """

    name: str
    definition: str
    instructions: str = ""
    harness: str = "playbook"
    servers: Sequence[int] = ()
    default_mode: str = PermissionMode.AUTONOMOUS.value
    elicitation_timeout: str | None = None
    enabled: bool = True
    metadata: Mapping[str, Any] | None = None
    user_id: str | None = None


@transaction.atomic
def save(actor: Actor, agent: Agent | None, values: AgentValues) -> Agent:
    """Create (`agent` None) or change an agent; turns that run already keep the definition they froze.

    Raises NotAllowed, and ModelValidationError whose `details["fields"]` name each mistake as
    {"path": [field], "message": sentence}.
    """
    actor.require(Role.ADMIN)
    servers = _checked_servers(actor, values.servers)
    checked = {
        "name": _checked_name(actor, agent, values.name),
        "instructions": _checked_instructions(values.instructions),
        "harness": values.harness,
        "definition": _checked_definition(values, servers),
        "default_mode": _checked_mode(values.default_mode),
        "elicitation_timeout": _checked_timeout(values.elicitation_timeout),
        "enabled": values.enabled,
    }
    if values.metadata is not None:
        checked["metadata"] = dict(values.metadata)
    row = agent or Agent(account=actor.account, end_user=end_user(actor.account, values.user_id))
    for field, value in checked.items():  # only now, so that a refusal leaves the caller's row as it was
        setattr(row, field, value)
    if agent is None:
        row.save(force_insert=True)
    else:  # what the form does not have may have been changed by a program since the row was read
        row.save(update_fields=[*checked, "updated_at"])
    row.servers.set(servers)
    audit.note(actor.account, actor.user, "agent.saved", f"agent {row.pk}", _described(row, servers))
    return row


def _described(agent: Agent, servers: Sequence[Server]) -> dict[str, Any]:
    """An agent for the ledger; long texts by their digests."""
    return {
        "name": agent.name,
        "harness": agent.harness,
        "definition_digest": digest(agent.definition),
        "instructions_digest": digest(agent.instructions),
        "servers": sorted(server.name for server in servers),
        "default_mode": agent.default_mode,
        "elicitation_timeout": agent.elicitation_timeout,
        "enabled": agent.enabled,
    }


@transaction.atomic
def change(actor: Actor, agent_id: int, changes: Mapping[str, Any]) -> Agent:
    """Change some of an agent's values, named as in AgentValues. Raises NotFound and what `save` raises."""
    # Without the key: whoever stores something that names the agent, and has the ledger, need not wait for this.
    agent = get(actor, Agent.objects.select_for_update(of=("self",), no_key=True), pk=agent_id)
    stored = AgentValues(
        name=agent.name,
        definition=json.dumps(agent.definition, ensure_ascii=False),
        instructions=agent.instructions,
        harness=agent.harness,
        servers=list(agent.servers.values_list("pk", flat=True)),
        default_mode=agent.default_mode,
        elicitation_timeout=agent.elicitation_timeout,
        enabled=agent.enabled,
    )
    return save(actor, agent, replace(stored, **changes))


@transaction.atomic
def remove(actor: Actor, agent_id: int) -> None:
    """Delete an agent and its tasks. Raises NotFound, NotAllowed, and StateConflict for one that has run."""
    agent = get(actor, Agent.objects.select_for_update(of=("self",)), pk=agent_id)
    actor.require(Role.ADMIN)
    try:
        with transaction.atomic():
            agent.delete()
    except ProtectedError as error:
        raise StateConflict(
            f"{agent.name} has run, and its history stays. Disable it instead; then nothing new can start.",
            details={"runs": agent.runs.count()},
        ) from error
    audit.note(actor.account, actor.user, "agent.removed", f"agent {agent_id}", {"name": agent.name})


def server_ids(actor: Actor, names: Sequence[str]) -> list[int]:
    """The servers of these names, each at its place in the list. Raises ModelValidationError for one not there."""
    found = dict(visible(actor, Server.objects.filter(name__in=names)).values_list("name", "pk"))
    missing = [(index, name) for index, name in enumerate(names) if name not in found]
    if missing:
        raise ModelValidationError(
            "There is no such server. Register it first.",
            details={
                "fields": [
                    {"path": ["servers", index], "message": f"There is no server {name}."}
                    for index, name in missing
                ]
            },
        )
    return [found[name] for name in names]


def parse_definition(text: str) -> dict[str, Any]:
    """The JSON object in `text`.

    Raises ModelValidationError that says line and column of a syntax error, or what else keeps the text from
    being a definition (a repeated key, NaN, another type than an object, too long).
    """
    if len(text) > MAX_DEFINITION:
        _refuse("definition", [f"The definition is longer than {MAX_DEFINITION:,} characters."])
    try:
        value = strict_json.loads(text)
    except ValueError as error:  # also a number of thousands of digits, which Python refuses to read
        _refuse("definition", [str(error)])
    if not isinstance(value, dict):
        _refuse("definition", ['The definition must be a JSON object such as {"steps": [...]}.'])
    return dict(value)


def unknown_targets(
    definition: Mapping[str, Any], targets: frozenset[str], servers: Sequence[Server]
) -> list[str]:
    """Sentences, each with its place in the definition, about targets that the agent cannot reach.

    A server that was never listed gets the benefit of the doubt: its tools are not known yet. So do prompts
    and resources, which are not stored.
    """
    offered = _offered(servers)
    sentences = []
    for path, target in _places(definition):
        name, _, tool = target.partition(":")
        if target not in targets or name == LOCAL:
            continue
        if name not in offered:
            sentences.append(f"{path}: the agent lacks the server {name}. Choose it, or add it first.")
            continue
        tools = offered[name]
        if path.endswith(".call") and tools is not None and tool not in tools:
            sentences.append(f"{path}: the server {name} has no tool {tool}. {_hint(tools)}")
    return sentences


def _places(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Where a call, prompt or read names its target; arguments are data and hold none."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            if key in ("call", "prompt", "read") and isinstance(item, str):
                yield inner, item
            elif key != "args":
                yield from _places(item, inner)


def _checked_definition(values: AgentValues, servers: Sequence[Server]) -> dict[str, Any]:
    definition = parse_definition(values.definition)
    harness = get_harness(values.harness)
    mistakes = list(harness.validate(definition))
    if not mistakes:
        mistakes = unknown_targets(definition, harness.targets(definition), servers)
    if mistakes:
        _refuse("definition", mistakes)
    return definition


def _offered(servers: Sequence[Server]) -> dict[str, frozenset[str] | None]:
    """{server name: its tools, or None if it was never listed}."""
    tools = Tool.objects.filter(server__in=servers, present=True).values_list("server", "name")
    names: dict[int, set[str]] = {server.pk: set() for server in servers}
    for server_id, name in tools:
        names[server_id].add(name)
    return {one.name: frozenset(names[one.pk]) if one.listed_at or names[one.pk] else None for one in servers}


def _hint(names: Collection[str]) -> str:
    if not names:
        return "It lists none at all."
    some = ", ".join(sorted(names)[:8])
    return f"It lists: {some}{', …' if len(names) > 8 else '.'}"


def _checked_servers(actor: Actor, ids: Sequence[int]) -> list[Server]:
    found = list(visible(actor, Server.objects.filter(pk__in=ids)))
    if len(found) != len(set(ids)):
        _refuse("servers", ["One of the chosen servers is not there any more. Choose again."])
    return found


def _checked_name(actor: Actor, agent: Agent | None, name: str) -> str:
    text = name.strip()
    if not text or len(text) > 120:
        _refuse("name", ["A name has between 1 and 120 characters."])
    if not is_line(text):
        _refuse("name", ["A name is one line of text, without control characters."])
    Account.hold_names(actor.account.pk)
    taken = visible(actor, Agent.objects.filter(name=text))
    if (taken.exclude(pk=agent.pk) if agent else taken).exists():
        _refuse("name", [f"There is an agent named {text} already."])
    return text


def _checked_instructions(text: str) -> str:
    if len(text) > MAX_INSTRUCTIONS:
        _refuse("instructions", [f"Instructions have at most {MAX_INSTRUCTIONS:,} characters."])
    return text


def _checked_mode(mode: str) -> str:
    if mode not in list(PermissionMode):
        _refuse("default_mode", ["The mode is one of autonomous, approval, plan."])
    return mode


def _checked_timeout(text: str | None) -> str | None:
    """A17; empty means: the account's default."""
    if text is None or not text.strip():
        return None
    try:
        parse_timeout(text.strip())
    except ModelValidationError as error:
        _refuse("elicitation_timeout", [error.message])
    return text.strip()


def _refuse(field: str, messages: Sequence[str]) -> NoReturn:
    shown = list(messages[:MAX_MISTAKES])
    if len(messages) > MAX_MISTAKES:
        shown.append(f"… and {len(messages) - MAX_MISTAKES} more.")
    raise ModelValidationError(
        shown[0] if len(shown) == 1 else f"{len(messages)} mistakes. Correct them and save again.",
        details={"fields": [{"path": [field], "message": message} for message in shown]},
    )


def agent_of(actor: Actor, agent_id: int) -> Agent:
    """One agent of the actor's account. Raises NotFound."""
    return get(actor, Agent.objects.prefetch_related("servers"), pk=agent_id)
