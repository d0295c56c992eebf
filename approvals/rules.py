"""A rule to be, and the one sentence that says what a rule does. Nothing here changes a row."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from approvals.condition_shape import condition_words, normal, read_condition, stored_condition
from approvals.conditions import Condition
from approvals.facts import Effect, Scope
from approvals.models import Policy
from runs.canonical import digest
from runs.durations import utc_text
from runs.errors import ModelValidationError
from runs.models import Account, EndUser, Run
from runs.models.exact import is_plain
from runs.models.server import server_name as server_name_rule
from runs.visible import visible

MAX_DAYS = 3650
MAX_TOOL_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule to be: `target` is `server` or `server:tool`, and the server need not exist yet.

    `end_user` is given for the scope user only, `run` for the scope run only. With a `condition` it is about calls with
    such arguments only. `expires_at` None is until revoked.
    """

    account: Account
    effect: Effect
    scope: Scope
    target: str
    end_user: EndUser | None = None
    run: Run | None = None
    condition: Condition = ()
    expires_at: dt.datetime | None = None

    @property
    def sentence(self) -> str:
        return rule_text(
            effect=self.effect,
            target=self.target,
            scope=self.scope,
            user_id=self.end_user.user_id if self.end_user else None,
            run_id=self.run.pk if self.run else None,
            condition=self.condition,
            expires_at=self.expires_at,
        )

    @property
    def digest(self) -> str:
        """Stands for everything that the rule says; the same before and after its end user is first stored."""
        return digest(
            {
                "account": self.account.pk,
                "effect": self.effect.value,
                "scope": self.scope.value,
                "target": self.target,
                "user": self.end_user.user_id if self.end_user else None,
                "run": self.run.pk if self.run else None,
                "condition": stored_condition(self.condition),
                "expires_at": utc_text(self.expires_at) if self.expires_at else None,
            }
        )


def remembering(run: Run, target: str, scope: Scope, days: int | None, condition: Condition = ()) -> Rule:
    """The allow rule that "remember" on a pause of `run` would store (R23).

    Raises ModelValidationError for a scope that the run does not have, a number of days out of range, or a condition
    that is too long to be read.
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
        condition=normal(condition),
        expires_at=end_of(days),
    )


def preview(run: Run, target: str, scope: str, days: int | None = None, condition: Condition = ()) -> str:
    """The exact text of the rule that `remembering` would store, to be shown before it is saved (R23)."""
    try:
        wanted = Scope(scope)
    except ValueError as error:
        raise ModelValidationError(f"A decision is remembered for one of: {', '.join(Scope)}.") from error
    return remembering(run, target, wanted, days, condition).sentence


def rule_sentence(policy: Policy) -> str:
    """What a stored rule does, in the words that `preview` used before it was saved."""
    return rule_text(
        effect=Effect(policy.effect),
        target=policy.target,
        scope=Scope(policy.scope),
        user_id=policy.end_user.user_id if policy.end_user else None,
        run_id=policy.run_id,
        condition=read_condition(policy.condition),
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
    condition: Condition = (),
) -> str:
    """The one sentence of a rule: effect, target, which arguments, whose runs, until when; complete.

    Names and values are shown with `visible`. `run_id` None is a run that nobody has named yet.
    """
    server, _, tool = target.partition(":")
    what = visible(target) if tool else f"every tool of {visible(server)}"
    if scope is Scope.RUN:
        whose = f"for the rest of run {run_id}" if run_id is not None else "for the rest of its run"
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
    return f"{_VERBS[effect]} {what}{condition_words(condition)} {whose}{until}."


def parse_target(target: str) -> tuple[str, str]:
    """`server` or `server:tool` as its two parts, split at the first colon; the tool is "" for a whole server.

    Raises ModelValidationError for anything else; there are no prefixes and no wildcards (R26).
    """
    server, colon, tool = target.partition(":")
    try:
        server_name_rule(server)
    except ValidationError:
        raise _bad_target() from None
    # The rule for names would let a final newline pass; and what no database holds names nothing.
    if server.endswith("\n") or not is_plain(tool):
        raise _bad_target()
    if "*" in tool or tool != tool.strip():  # a pattern or a slip: as a deny it would protect nothing
        raise _bad_target()
    if bool(colon) != bool(tool) or len(tool) > MAX_TOOL_NAME:
        raise _bad_target()
    return server, tool


def _bad_target() -> ModelValidationError:
    return ModelValidationError(
        "A rule is about a server or one of its tools. Write it as server or server:tool, without wildcards."
    )


def end_of(days: Any) -> dt.datetime | None:
    """The first midnight (UTC) after that many whole days, so at least `days` and at most a day more.

    Not the minute: a rule is saved only if it is the one that was shown, and a card is read for a while.
    Raises ModelValidationError.
    """
    if days is None:
        return None
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
        raise ModelValidationError(
            f"A rule expires after 1 to {MAX_DAYS} days. Leave it out to keep the rule."
        )
    last = timezone.now().astimezone(dt.UTC).date() + dt.timedelta(days=days)
    return dt.datetime.combine(last + dt.timedelta(days=1), dt.time(), dt.UTC)
