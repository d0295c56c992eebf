"""A run as the lines of a timeline: messages, steps with what was decided about them, and ends."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from runs.canonical import digest
from runs.models import Run
from runs.timeline import load, rules, words
from runs.timeline.load import Facts, Loaded
from runs.timeline.rules import Named
from runs.timeline.values import Answer, Block, Child, Note, Pause, Row, Rule, Timeline

__all__ = ["Answer", "Block", "Child", "Note", "Pause", "Row", "Rule", "Timeline", "page", "since"]

Policies = Mapping[int, Named]


def page(run: Run, *, before: int | None = None) -> Timeline:
    """The newest steps of a run, or those before step number `before`, with what happened around them."""
    return _assemble(load.window(run, before=before))


def since(run: Run, *, after: int) -> Timeline:
    """The rows that may have changed since event number `after`, and all open ones; complete rows, to replace."""
    return _assemble(load.changes(run, after=after))


def _assemble(loaded: Loaded) -> Timeline:
    rounds, notes = _by(loaded.rounds, "step_id"), _by(loaded.notes, "step")
    children = {child["parent_step_id"]: child for child in loaded.children}
    policies = rules.named(loaded.run.account_id, _policy_ids(loaded))
    rows = [
        _step_row(step, rounds[step["pk"]], notes[str(step["seq"])], children.get(step["pk"]), policies)
        for step in loaded.steps
    ]
    rows += [_event_row(event) for event in loaded.events]
    ordered = tuple(sorted(map(_versioned, rows), key=lambda row: row.order))
    return Timeline(rows=ordered, seq=loaded.run.event_seq, earlier=loaded.earlier)


def _policy_ids(loaded: Loaded) -> set[int]:
    decided = {(step["call__verdict"] or {}).get("rule_id") for step in loaded.steps}
    closed = {words.rule_of(round_)[1] for round_ in loaded.rounds}
    return {one for one in decided | closed if one is not None}


def _step_row(
    step: Facts,
    rounds: Sequence[Facts],
    notes: Sequence[Facts],
    child: Facts | None,
    policies: Policies,
) -> Row:
    is_call = step["call__phase"] is not None
    icon, sentence, tone = words.of_call(step) if is_call else words.of_step(step)
    text = step["text"] or (words.questions_of(step["questions"]) if step["kind"] == "ask" else "")
    if step["call__phase"] == "sent" and (so_far := words.progress(step)):
        text = so_far
    verdict = (step["call__verdict"] or {}) if is_call else {}
    ended = step["status"] in ("failed", "denied", "cancelled")
    return Row(
        key=f"step-{step['seq']}",
        order=_order(step["created_at"], step["seq"]),
        version="",
        at=step["created_at"],
        icon=icon,
        tone=tone,
        sentence=sentence,
        step=step["seq"],
        target=f"{step['call__server_name']}:{step['call__name']}" if is_call else "",
        body=words.cut(text),
        body_part="text" if len(text) > load.LIMIT else "",
        reason=words.why(verdict),
        rule=_rule(words.by_policy(verdict), verdict.get("rule_id"), policies),
        error=words.cut(step["error"] or "") if ended else "",
        open=step["finished_at"] is None,
        blocks=tuple(_blocks(step)),
        pauses=tuple(_pause(round_, step, policies) for round_ in rounds),
        notes=tuple(Note(at=note["at"], text=words.of_note(note)) for note in notes),
        child=_child(child),
    )


def _blocks(step: Facts) -> list[Block]:
    if step["call__phase"] is None:
        return list(words.block("Result", step["value"], "result")) if step["kind"] == "run" else []
    asked = "Arguments the agent asked for" if step["edited"] else "Arguments"
    return [
        *words.block(asked, step["asked"], "arguments"),
        *words.block("Arguments as edited by a person, and sent", step["edited"], "edited"),
        *_result(step),
    ]


def _result(step: Facts) -> list[Block]:
    """A result that the journal itself had to cut is whole in the text view all the same."""
    if step["bytes_cut"] is not None and step["value_head"] is not None:
        return [Block(label="Result", text=words.cut(step["value_head"]), part="result")]
    return list(words.block("Result", step["value"], "result"))


def _rule(lead: str, policy_id: int | None, policies: Policies) -> Rule | None:
    if policy_id is None:
        return None
    policy = policies[policy_id]
    return Rule(id=policy_id, lead=lead, sentence=policy.sentence or f"number {policy_id}.", gone=policy.gone)


def _pause(round_: Facts, step: Facts, policies: Policies) -> Pause:
    sentence, tone, delivery = words.of_round(round_)
    lead, policy_id, why = words.rule_of(round_)
    is_question = round_["kind"] == "question" and step["answers"] is not None
    return Pause(
        id=round_["pk"],
        kind=round_["kind"],
        sentence=sentence,
        at=round_["response_validated_at"] or round_["failed_at"] or round_["created_at"],
        tone=tone,
        pending=round_["status"] == "pending",
        delivery=delivery,
        note=round_["note"],
        deadline=round_["deadline"] if round_["status"] == "pending" else None,
        answers=tuple(words.chosen(step["answers"]) if is_question else words.answers_of(round_)),
        why=why,
        rule=_rule(lead, policy_id, policies),
    )


def _child(child: Facts | None) -> Child | None:
    if child is None:
        return None
    return Child(
        run_id=child["pk"], agent=child["agent__name"], status=child["status"], outcome=child["outcome"]
    )


def _event_row(event: Facts) -> Row:
    icon, sentence, tone = words.of_event(event)
    ends = event["type"] in load.ENDS
    return Row(
        key=f"event-{event['seq']}",
        # An end is written in the transaction of the last step and stands after it.
        order=_order(event["at"], 999_999_999 if ends else 0),
        version="",
        at=event["at"],
        icon=icon,
        tone=tone,
        sentence=sentence,
        body=words.cut(event["message"] or event["output"] or ""),
        event=event["seq"],
        body_part="output" if len(event["output"] or "") > load.LIMIT else "",
        error=words.cut(event["error"] or "") if ends else "",
    )


def _order(at: dt.datetime, tie: int) -> str:
    return f"{at:%Y%m%d%H%M%S%f}.{tie:09d}"


def _versioned(row: Row) -> Row:
    return replace(row, version=digest(repr(row))[7:23])


def _by(rows: Sequence[Facts], key: str) -> defaultdict[object, list[Facts]]:
    grouped: defaultdict[object, list[Facts]] = defaultdict(list)
    for row in rows:
        value = row[key]
        grouped[str(value) if key == "step" else value].append(row)
    return grouped
