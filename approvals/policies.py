"""Standing rules: making one, taking it back, and the one sentence that says what it does.

Who may: a standing rule that is written down on its own needs an admin; an operator may make one only as the
"remember" of a decision (`approvals.decisions`). Admins revoke any rule, operators those that they made.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from approvals import pins, resolutions
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from runs import access
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed, NotFound
from runs.models import Account, EndUser, Role, Run
from runs.models.server import server_name as server_name_rule
from runs.visible import visible

MAX_DAYS = 3650
MAX_NOTE = 500
MAX_TOOL_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule to be: `target` is `server` or `server:tool`, and the server need not exist yet.

    `end_user` is given for the scope user only, `run` for the scope run only. `expires_at` None is until revoked.
    """

    account: Account
    effect: Effect
    scope: Scope
    target: str
    end_user: EndUser | None = None
    run: Run | None = None
    expires_at: dt.datetime | None = None

    @property
    def sentence(self) -> str:
        return rule_text(
            effect=self.effect,
            target=self.target,
            scope=self.scope,
            user_id=self.end_user.user_id if self.end_user else None,
            run_id=self.run.pk if self.run else None,
            expires_at=self.expires_at,
        )


@transaction.atomic
def grant(actor: Actor | None, rule: Rule, *, source: Source, note: str = "") -> Policy:
    """Store a rule and close the pauses that it now covers (R9); returns the row that stands for it.

    There is one row per scope, target and effect. Granting again renews that row: it pins what is offered now,
    and the later of both expiries holds. `actor` None is the installation itself. Raises NotAllowed (an operator
    may grant only with the source run_approval), NotFound (an owner in another account), ModelValidationError.
    """
    if actor is not None:
        actor.require(Role.OPERATOR if source is Source.RUN_APPROVAL else Role.ADMIN)
    _check_account(actor, rule)
    if len(note) > MAX_NOTE:
        raise ModelValidationError(f"A note has at most {MAX_NOTE} characters.")
    server, tool = parse_target(rule.target)
    policy, made = Policy.objects.select_for_update().get_or_create(
        account=rule.account,
        effect=rule.effect.value,
        scope=rule.scope.value,
        end_user=rule.end_user,
        run=rule.run,
        target_server=server,
        target_tool=tool,
        condition_digest="",
        defaults={
            "source": source.value,
            "note": note,
            "created_by": actor.user if actor else None,
            "expires_at": rule.expires_at,
        },
    )
    if not made:
        policy.expires_at = _later(policy.expires_at, rule.expires_at)
        policy.suspended_reason = ""
    pins.pin(policy)
    policy.save()
    if rule.effect is Effect.ALLOW:
        resolutions.close_covered(policy, rule_sentence(policy))
    return policy


@transaction.atomic
def revoke(actor: Actor, policy_id: int) -> None:
    """Delete a rule; the next call that it allowed is asked about again, also inside a live run (R27).

    Raises NotFound, and NotAllowed for an operator who did not make the rule.
    """
    policy = access.get(actor, Policy.objects.select_for_update(), pk=policy_id)
    actor.require(Role.OPERATOR)
    if not actor.may(Role.ADMIN) and policy.created_by_id != actor.user.pk:
        raise NotAllowed("Somebody else made this rule. Ask an admin to revoke it.")
    policy.delete()


def remembering(run: Run, target: str, scope: Scope, days: int | None) -> Rule:
    """The allow rule that "remember" on a pause of `run` would store (R23).

    Raises ModelValidationError for a scope that the run does not have, or a number of days out of range.
    """
    if scope is Scope.USER and run.end_user is None:
        raise ModelValidationError("This run carries no user to remember it for.")
    if scope is Scope.ACCOUNT and run.end_user is not None:
        raise ModelValidationError("Account-wide rules are offered only on runs that carry no user.")
    return Rule(
        account=run.account,
        effect=Effect.ALLOW,
        scope=scope,
        target=target,
        end_user=run.end_user if scope is Scope.USER else None,
        run=run if scope is Scope.RUN else None,
        expires_at=_end_of(days),
    )


def preview(run: Run, target: str, scope: str, days: int | None = None) -> str:
    """The exact text of the rule that `remembering` would store, to be shown before it is saved (R23)."""
    try:
        wanted = Scope(scope)
    except ValueError as error:
        raise ModelValidationError(f"A decision is remembered for one of: {', '.join(Scope)}.") from error
    return remembering(run, target, wanted, days).sentence


def rule_sentence(policy: Policy) -> str:
    """What a stored rule does, in the words that `preview` used before it was saved."""
    return rule_text(
        effect=Effect(policy.effect),
        target=policy.target,
        scope=Scope(policy.scope),
        user_id=policy.end_user.user_id if policy.end_user else None,
        run_id=policy.run_id,
        expires_at=policy.expires_at,
    )


_VERBS = {Effect.ALLOW: "Allow", Effect.ASK: "Always ask before", Effect.DENY: "Deny"}


def rule_text(
    *,
    effect: Effect,
    target: str,
    scope: Scope,
    user_id: str | None,
    run_id: int | None,
    expires_at: dt.datetime | None,
) -> str:
    """The one sentence of a rule: effect, target, whose runs, until when. Names are shown with `visible`."""
    server, _, tool = target.partition(":")
    what = visible(target) if tool else f"every tool of {visible(server)}"
    if scope is Scope.RUN:
        whose = f"for the rest of run {run_id}"
    elif scope is Scope.USER:
        whose = f"in every run for the user {visible(user_id or '')}"
    elif effect is Effect.ALLOW:
        whose = "in every run of this account that carries no user"
    else:
        whose = "in every run of this account"
    if expires_at is not None:
        at = expires_at.astimezone(dt.UTC)
        until = f", until {at.day} {at:%B %Y, %H:%M} UTC"
    else:
        until = "" if scope is Scope.RUN else ", until it is revoked"
    return f"{_VERBS[effect]} {what} {whose}{until}."


def parse_target(target: str) -> tuple[str, str]:
    """`server` or `server:tool` as its two parts, split at the first colon; the tool is "" for a whole server.

    Raises ModelValidationError for anything else; there are no prefixes and no wildcards (R26).
    """
    server, colon, tool = target.partition(":")
    try:
        server_name_rule(server)
    except ValidationError:
        raise _bad_target() from None
    if bool(colon) != bool(tool) or len(tool) > MAX_TOOL_NAME:
        raise _bad_target()
    return server, tool


def _bad_target() -> ModelValidationError:
    return ModelValidationError(
        "A rule is about a server or one of its tools. Write it as server or server:tool, without wildcards."
    )


def _check_account(actor: Actor | None, rule: Rule) -> None:
    """An owner of another account looks like one that does not exist (house style 9)."""
    accounts = {owner.account_id for owner in (rule.end_user, rule.run) if owner is not None}
    accounts.add(actor.account.pk if actor else rule.account.pk)
    if accounts != {rule.account.pk}:
        raise NotFound(f"There is no such user or run in {rule.account.name}.")


def _end_of(days: Any) -> dt.datetime | None:
    """The midnight (UTC) after that many days: a date that is the same when shown and when saved."""
    if days is None:
        return None
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
        raise ModelValidationError(
            f"A rule expires after 1 to {MAX_DAYS} days. Leave it out to keep the rule."
        )
    last = timezone.now().astimezone(dt.UTC).date() + dt.timedelta(days=days)
    return dt.datetime.combine(last + dt.timedelta(days=1), dt.time(), dt.UTC)


def _later(one: dt.datetime | None, other: dt.datetime | None) -> dt.datetime | None:
    return None if one is None or other is None else max(one, other)
