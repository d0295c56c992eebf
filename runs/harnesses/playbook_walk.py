"""Walking a playbook over the journal of a run: the next step as a pure function (design section 3).

Plain module. A step's path is its place in the definition ("steps.3.parallel.0", "cases.0.steps.2",
"replies.1.0"); revision n of a plan adds ".rn". Nothing is remembered between calls: every walk starts at the
first step, binds what the journal has and proposes what it lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from runs.harnesses.playbook_expressions import TemplateError, holds, render, render_text
from runs.harnesses.playbook_questions import filled_in
from runs.steps import (
    Ask,
    Call,
    Entry,
    Fail,
    Finish,
    Journal,
    Json,
    Prompt,
    Proposal,
    ProposePlan,
    Read,
    RunAgent,
    Say,
    Sleep,
    StepKind,
)

PlaybookStep: TypeAlias = Mapping[str, Json]

DONE: Final = "The playbook came to its end."
NO_CASE: Final = "This playbook has no steps for that message."
NO_REPLY: Final = "This playbook has no steps for another reply."
_MET: Final = frozenset({"done", "approved"})
"""Statuses that satisfy `required`."""


def walk(journal: Journal) -> Sequence[Proposal]:
    """What can start now; empty while an open entry has to end first, and once the turn is over."""
    turn = journal.turns[-1]
    if any(entry.kind is StepKind.FINISH for entry in turn.entries):
        return []
    base, steps, otherwise = _steps_of_turn(journal)
    return _Walk(journal).proposals(base, steps, otherwise)


def _steps_of_turn(journal: Journal) -> tuple[str, Sequence[PlaybookStep], str]:
    """Path prefix and steps of the current turn, and what to finish with if they say nothing."""
    turn = journal.turns[-1]
    reply = len(journal.turns) - 2
    if reply >= 0:
        replies = turn.definition.get("replies", [])
        return (
            (f"replies.{reply}", replies[reply], DONE) if reply < len(replies) else ("replies", [], NO_REPLY)
        )
    for index, case in enumerate(turn.definition.get("cases", [])):
        if case["when"].casefold() in turn.message.casefold():
            return f"cases.{index}.steps", case["steps"], DONE
    if "steps" in turn.definition:
        return "steps", turn.definition["steps"], DONE
    return "steps", [], NO_CASE


class _Walk:
    """One walk: the journal of the turn by path, and what expressions see at the point reached so far."""

    def __init__(self, journal: Journal) -> None:
        *earlier, turn = journal.turns
        self.entries = {entry.path: entry for entry in turn.entries}
        self.said: str | None = None
        self.env: dict[str, Json] = {}
        for past in earlier:
            for entry in past.entries:
                self.bind(entry)
        self.env |= {"message": turn.message, "user_id": journal.user_id, "metadata": dict(journal.metadata)}

    def bind(self, entry: Entry) -> None:
        if entry.bind is not None and entry.result is not None:
            self.env[entry.bind] = dict(entry.result)

    def proposals(self, base: str, steps: Sequence[PlaybookStep], otherwise: str) -> Sequence[Proposal]:
        for index, step in enumerate(steps):
            path = f"{base}.{index}"
            try:
                found = self.visit(path, step)
            except TemplateError as error:
                return [Fail(path=f"{path}.error", text=str(error))]
            if found is not None:
                return found
        return [Finish(path="end", text=otherwise if self.said is None else self.said)]

    def visit(self, path: str, step: PlaybookStep) -> Sequence[Proposal] | None:
        """What this step wants now, or None when it is over or skipped and the walk goes on behind it."""
        if "parallel" in step:
            return self.visit_group(path, step)
        if "plan" in step:
            return self.visit_plan(path, step)
        entry = self.entries.get(path)
        if entry is None:
            return [self.propose(path, step)] if self.wanted(path, step) else None
        if entry.result is None:
            return []
        if "say" in step:
            self.said = render_text(step["say"], self.env, f"{_place(path)}.say")
        self.bind(entry)
        return self.failure(path, step, [entry])

    def visit_group(self, path: str, step: PlaybookStep) -> Sequence[Proposal] | None:
        """All calls start together and are waited for together; expressions see what was bound before."""
        if not self.wanted(path, step):
            return None
        calls = {f"{path}.parallel.{index}": call for index, call in enumerate(step["parallel"])}
        entries = [self.entries[inner] for inner in calls if inner in self.entries]
        missing = [
            self.propose(inner, call, required=bool(step.get("required")))
            for inner, call in calls.items()
            if inner not in self.entries and self.wanted(inner, call)
        ]
        if missing or any(entry.result is None for entry in entries):
            return missing
        for entry in entries:
            self.bind(entry)
        return self.failure(path, step, entries)

    def visit_plan(self, path: str, step: PlaybookStep) -> Sequence[Proposal] | None:
        """Each revise shows the next text of the list; the last one stands for all further revisions."""
        revision, feedback = 0, None
        here = path
        while (entry := self.entries.get(here)) is not None:
            if entry.result is None:
                return []
            self.bind(entry)
            if entry.result.get("status") != "revise":
                return self.failure(path, step, [entry])
            revision, feedback = revision + 1, entry.result.get("text")
            here = f"{path}.r{revision}"
        if revision == 0 and not self.wanted(path, step):
            return None
        shown = min(revision, len(step["plan"]) - 1)
        text = render_text(step["plan"][shown], self.env, f"{_place(path)}.plan[{shown}]")
        return [ProposePlan(**_common(here, step), text=text, revision=revision, feedback=feedback)]

    def wanted(self, path: str, step: PlaybookStep) -> bool:
        return "if" not in step or holds(step["if"], self.env, f"{_place(path)}.if")

    def failure(self, path: str, step: PlaybookStep, entries: Sequence[Entry]) -> Sequence[Proposal] | None:
        """The end of the turn if a required entry was denied or failed, else None."""
        unmet = [
            _unmet(entry.path, entry.result)
            for entry in entries
            if (entry.required or step.get("required"))
            and entry.result is not None
            and entry.result.get("status") not in _MET
        ]
        return [Fail(path=f"{path}.required", text="; ".join(unmet))] if unmet else None

    def propose(self, path: str, step: PlaybookStep, *, required: bool = False) -> Proposal:
        kind = next((kind for kind in _PROPOSE if kind in step), None)
        if kind is None:
            return Fail(path=path, text=f"{_place(path)}: this playbook step is of an unknown kind")
        return _PROPOSE[kind](
            self.env, f"{_place(path)}.{kind}", step, _common(path, step, required=required)
        )


def _common(path: str, step: PlaybookStep, *, required: bool = False) -> dict[str, Any]:
    """The fields that every proposal has."""
    return {"path": path, "bind": step.get("as"), "required": required or bool(step.get("required"))}


def _place(path: str) -> str:
    """A path as people write it: "steps.3.parallel.0" is "steps[3].parallel[0]"."""
    return re.sub(r"\.(\d+)", r"[\1]", path)


def _unmet(path: str, result: Mapping[str, Json]) -> str:
    """Why a required step ends the turn, with the error that it ended in."""
    error = result.get("error")
    because = f": {error[:500]}" if isinstance(error, str) and error.strip() else ""
    return f"{_place(path)} is required and ended as {result.get('status')}{because}"


Env: TypeAlias = Mapping[str, Json]
Common: TypeAlias = dict[str, Any]


def _say(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    return Say(**common, text=render_text(step["say"], env, where))


def _call(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    place = f"{where.removesuffix('.call')}.args"
    return Call(**common, target=step["call"], args=render(step.get("args", {}), env, place))


def _prompt(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    place = f"{where.removesuffix('.prompt')}.args"
    args = {name: render_text(text, env, f"{place}.{name}") for name, text in step.get("args", {}).items()}
    return Prompt(**common, target=step["prompt"], args=args)


def _read(_env: Env, _where: str, step: PlaybookStep, common: Common) -> Proposal:
    return Read(**common, target=step["read"])


def _ask(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    try:
        questions = filled_in(step["ask"]["questions"], env, f"{where}.questions")
    except ValueError as error:
        return Fail(path=f"{common['path']}.error", text=str(error))
    return Ask(**common, questions=questions, blocking=step["ask"].get("blocking", True))


def _run(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    message = render_text(step["run"]["message"], env, f"{where}.message")
    return RunAgent(**common, agent=step["run"]["agent"], message=message)


def _sleep(_env: Env, _where: str, step: PlaybookStep, common: Common) -> Proposal:
    return Sleep(**common, seconds=float(step["sleep"]))


def _fail(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    return Fail(**common, text=render_text(step["fail"], env, where))


def _finish(env: Env, where: str, step: PlaybookStep, common: Common) -> Proposal:
    return Finish(**common, text=render_text(step["finish"], env, where))


_PROPOSE: Final[Mapping[str, Callable[[Env, str, PlaybookStep, Common], Proposal]]] = {
    "say": _say,
    "call": _call,
    "prompt": _prompt,
    "read": _read,
    "ask": _ask,
    "run": _run,
    "sleep": _sleep,
    "fail": _fail,
    "finish": _finish,
}
