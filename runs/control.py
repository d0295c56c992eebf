"""What people and callers do with a run: create, reply, cancel, change the mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import prefetch_related_objects

from runs import audit, closing, events, lease, row_writes, turns, write_behind
from runs.end_users import end_user
from runs.errors import ModelValidationError, NotFound, StateConflict
from runs.models import Agent, Run, Server, Step, Task, Turn, User
from runs.prepared import Param, Rows
from runs.round_rows import Decider
from runs.run_states import HumanInput, Outcome, PermissionMode, TurnStatus, stricter
from runs.submission_checks import checked_message, checked_tools, mode_of, resolve_human_input

_SERVERS: Rows[Server] = Rows(lambda: Server.objects.filter(agents=Param("agent", Agent._meta.pk)))

MAX_WAITING = 100
"""Messages that may wait behind the turn that is at work."""

LOOKS = 10
"""How often a run is looked at anew because it started another one while its family was being locked."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A run to be. `mode` None takes the task's, else the agent's default; `human_input` None follows the mode.

    `tools` limits the agent to "server" or "server:tool" targets; `tools_approve` makes that selection an
    approval too (M3 submissions only, C48).
    """

    message: str
    mode: str | None = None
    human_input: HumanInput | None = None
    user_id: str | None = None
    tools: Sequence[str] | None = None
    tools_approve: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    task: Task | None = None
    started_by: User | None = None


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """What a reply changes for its turn and the later ones; None leaves it as it is (m8tes-http 3)."""

    mode: str | None = None
    human_input: HumanInput | None = None
    tools: Sequence[str] | None = None


@transaction.atomic
@write_behind.kept()
def create_run(agent: Agent, submission: Submission, *, parent_step: Step | None = None) -> Run:
    """Record a run with its first turn and make it due.

    A child (`parent_step`) inherits end user, human_input, selection and an approved plan, and is never laxer than
    its parent.
    Raises ModelValidationError for a message, mode or selection that cannot be used.
    """
    if not agent.enabled:
        raise ModelValidationError(f"The agent {agent.name} is disabled. Enable it first.")
    message = checked_message(submission.message)
    mode = _resolve_mode(agent, submission)
    parent = parent_step.run if parent_step else None
    run = Run(
        account=agent.account,
        agent=agent,
        task=submission.task,
        message=message,
        end_user=parent.end_user if parent else end_user(agent.account, submission.user_id),
        mode=stricter(mode, PermissionMode(parent.mode)) if parent else mode,
        human_input=parent.human_input if parent else resolve_human_input(mode, submission.human_input),
        tools=parent.tools if parent else checked_tools(submission.tools),
        status=TurnStatus.QUEUED.value,  # as its first turn is
        plan_approved=parent is not None and parent.plan_approved,
        metadata=dict(submission.metadata),
        parent=parent,
        parent_step=parent_step,
        started_by=submission.started_by,
    )
    row_writes.insert(run)
    _open_turn(run, message, index=0, tools_approve=submission.tools_approve, user=submission.started_by)
    return run


@transaction.atomic
def reply(run_id: int, message: str, *, user: User | None = None, overrides: Overrides | None = None) -> Turn:
    """Open the next turn of a run; while an earlier one is unfinished the new one waits for its end.

    Raises ModelValidationError, and StateConflict for a child, for overrides while a turn is unfinished, and where
    too many messages wait already.
    """
    run = _locked(run_id)
    text = checked_message(message)
    if run.parent_id is not None:
        raise StateConflict(f"Run {run.pk} belongs to run {run.parent_id}; reply there.")
    if run.turns.exclude(status=TurnStatus.FINISHED.value).count() > MAX_WAITING:
        raise StateConflict(f"{MAX_WAITING} messages wait in run {run.pk} already. Send this one later.")
    if overrides is not None and overrides != Overrides():
        _override(run, overrides, user)
    return _open_turn(run, text, index=run.turns.count(), user=user)


@transaction.atomic
def cancel(run_id: int, *, decider: Decider) -> Run:
    """End every unfinished turn of a run as cancelled, its children first (A33).

    Raises StateConflict if there is nothing left to cancel.
    """
    run = locked_with_children(run_id)
    if run.status == TurnStatus.FINISHED:
        raise StateConflict(
            f"Run {run.pk} has ended already; there is nothing to cancel.", details={"status": run.status}
        )
    for child in run.children.live():
        cancel(child.pk, decider=decider)
    lease.revoke(run.pk)
    for turn in run.turns.exclude(status=TurnStatus.FINISHED.value):
        turns.finish(
            run,
            turn,
            Outcome.CANCELLED,
            error="The run was cancelled.",
            error_code="cancelled",
            decider=decider,
        )
    lease.wake(run.pk)  # a worker that holds a session of this run must hear of it
    return run


@transaction.atomic
def delete(run_id: int, *, decider: Decider | None = None) -> None:
    """Remove an ended run with its history, its pauses and the runs under it (C38).

    The account's ledger keeps how far each history had come, and who removed it (None: the installation).
    Raises StateConflict while it or one under it is unfinished, NotFound.
    """
    run = _locked(run_id)
    level, gone = [run], [run]
    while level:
        for each in level:
            if each.status != TurnStatus.FINISHED:
                raise StateConflict(
                    f"Run {each.pk} has not ended. Cancel it first, or wait for its end.",
                    details={"status": each.status},
                )
        level = list(Run.objects.filter(parent__in=level))
        gone += level
    ids = [(each.pk, audit.head_facts(each)) for each in gone]
    run.delete()
    by = decider or Decider(user=None, via=audit.INSTALLATION)
    for pk, head in ids:
        audit.note(run.account_id, by.user, audit.DELETED, audit.run_subject(pk), head, actor_name=by.via)


@transaction.atomic
def set_mode(run_id: int, mode: str, *, decider: Decider) -> Run:
    """Change how the run's further calls are decided; live children are never left laxer than their parent.

    To approval or plan switches human input on. What the change means for pauses that are pending already is
    decided by `approvals.decisions`, which calls this. Raises StateConflict on a finished run, and for a child
    that would become laxer than its parent.
    """
    run = locked_with_children(run_id)
    wanted = mode_of(mode)
    if run.status == TurnStatus.FINISHED:
        raise StateConflict(
            f"Run {run.pk} has ended; its mode no longer matters.", details={"status": run.status}
        )
    if run.parent and stricter(wanted, PermissionMode(run.parent.mode)) is not wanted:
        raise StateConflict(
            f"Run {run.pk} belongs to run {run.parent_id}, whose mode is {run.parent.mode}; a child run is never "
            f"laxer. Switch run {run.parent_id} first.",
            details={"mode": run.parent.mode},
        )
    before, run.mode = run.mode, wanted.value
    if wanted is not PermissionMode.AUTONOMOUS:
        run.human_input = HumanInput.MANAGED.value
    run.save(update_fields=["mode", "human_input", "updated_at"])
    events.record(
        run, "run.mode", {"from": before, "to": wanted.value}, actor=decider.user, actor_name=decider.via
    )
    if wanted is not PermissionMode.AUTONOMOUS:  # to which no child is laxer, so nothing of theirs changes
        for child in run.children.live():
            set_mode(child.pk, stricter(wanted, PermissionMode(child.mode)).value, decider=decider)
    return run


def freeze_bindings(agent: Agent) -> dict[str, Any]:
    """The servers and tool definitions that a turn starts with (design section 2)."""
    servers = _SERVERS(agent=agent.pk)
    prefetch_related_objects(servers, "tools")
    return {
        server.name: {
            "server_id": server.pk,
            "identity": server.identity,
            "tools": {tool.name: tool.digest for tool in server.tools.all() if tool.present},
        }
        for server in servers
    }


def _open_turn(
    run: Run, message: str, *, index: int, tools_approve: bool = False, user: User | None = None
) -> Turn:
    """`run` is new or was locked by the caller. `user` is who wrote this message, not who started the run: the history
    says who asked for what."""
    bindings = freeze_bindings(run.agent)
    write_behind.hold(run)
    turn = Turn(
        run=run,
        index=index,
        message=message,
        harness=run.agent.harness,
        definition=run.agent.definition,
        tools=run.tools,
        tools_approve=tools_approve,
        bindings=bindings,
        status=TurnStatus.QUEUED.value,
    )
    row_writes.insert(turn)
    if index > 0:  # else the run was made with its status
        turns.sync(run)
    events.record(
        run,
        "run.started" if turn.index == 0 else "run.message",
        {"turn": turn.index, "message": message, "mode": run.mode},
        turn=turn,
        actor=user,
        actor_name="parent run" if run.parent_id else "api",
    )
    closing.begin_in(run.account_id)
    lease.wake(run.pk)
    return turn


def _override(run: Run, wanted: Overrides, user: User | None) -> None:
    if run.status != TurnStatus.FINISHED:
        raise StateConflict(
            f"Run {run.pk} is at work: its mode and tools cannot change with a message that waits. Leave them out, "
            "or wait for the end of the turn.",
            details={"status": run.status},
        )
    before, mode = run.mode, mode_of(wanted.mode or run.mode)
    kept = HumanInput(run.human_input) if mode is PermissionMode.AUTONOMOUS else None
    run.mode = mode.value
    if wanted.mode == PermissionMode.PLAN:  # whoever asks for it anew wants to see a plan for this message
        run.plan_approved = False
    run.human_input = resolve_human_input(mode, wanted.human_input or kept).value
    if wanted.tools is not None:
        run.tools = checked_tools(wanted.tools)
    run.save(update_fields=["mode", "plan_approved", "human_input", "tools", "updated_at"])
    if before != run.mode:
        events.record(run, "run.mode", {"from": before, "to": run.mode}, actor=user, actor_name="api")


def _locked(run_id: int) -> Run:
    try:
        return (
            Run.objects.select_for_update(of=("self",)).select_related("agent", "started_by").get(pk=run_id)
        )
    except Run.DoesNotExist as error:
        raise NotFound("There is no such run.") from error


def locked_with_children(run_id: int) -> Run:
    """The run, locked together with every live run under it: the youngest first.

    A child that ends holds its own row and then takes its parent's, to tell it; whoever starts at the parent would
    wait for the child while the child waits for the parent. So everybody locks runs from young to old (a child is
    always younger). A child that was started meanwhile is found by looking again, with nothing held.
    """
    for _ in range(LOOKS):
        known = _live_below(run_id)
        attempt = transaction.savepoint()
        family = Run.objects.select_for_update(no_key=True).filter(pk__in={run_id, *known}).order_by("-pk")
        list(family.values_list("pk", flat=True))
        if _live_below(run_id) <= known:
            return _locked(run_id)
        transaction.savepoint_rollback(attempt)
    raise StateConflict(f"Run {run_id} is starting one run after the other. Try again in a moment.")


def _live_below(run_id: int) -> set[int]:
    """Every live run under this one, by way of live runs."""
    found: set[int] = set()
    level = {run_id}
    while level:
        level = set(Run.objects.live().filter(parent__in=level).values_list("pk", flat=True)) - found
        found |= level
    return found


def _resolve_mode(agent: Agent, submission: Submission) -> PermissionMode:
    """Request, else task default, else agent default (m8tes-http 4.4)."""
    task_default = submission.task.default_mode if submission.task else None
    return mode_of(submission.mode or task_default or agent.default_mode)
