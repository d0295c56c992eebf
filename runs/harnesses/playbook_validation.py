"""What is wrong with a playbook, each mistake with its path, before it is saved (design section 3).

Plain module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from runs.canonical import NotJson, canonical_json
from runs.harnesses.playbook_mistakes import quoted, unknown_keys
from runs.harnesses.playbook_steps import step_mistakes
from runs.steps import Json

MAX_BYTES: Final = 200_000
MAX_STEPS: Final = 500
MAX_DEPTH: Final = 30
_MAX_MISTAKES: Final = 50

_TARGETED: Final = ("call", "prompt", "read")


def mistakes_in(definition: Json) -> Sequence[str]:
    """Every mistake as "path: what is wrong", at most fifty; empty if the playbook may be saved."""
    return list(islice(_definition(definition), _MAX_MISTAKES))


def literal_targets(definition: Mapping[str, Json]) -> frozenset[str]:
    """Every "server:name" that calls, prompts and reads name. Tolerates a definition with mistakes."""
    found: set[str] = set()
    for where, steps in _step_lists(definition):
        for _, step in _with_inner(steps, where):
            found.update(step[kind] for kind in _TARGETED if isinstance(step.get(kind), str))
    return frozenset(found)


def _definition(definition: Json) -> Iterator[str]:
    if not isinstance(definition, Mapping):
        yield "playbook: must be an object with steps, cases or both"
        return
    try:
        size = len(canonical_json(definition).encode())
    except NotJson as error:
        yield f"{_dotted(error.path)}: {error.message}"
        return
    if size > MAX_BYTES:
        yield f"playbook: has {size:,} bytes; at most {MAX_BYTES:,} are allowed"
        return
    if _depth(definition) > MAX_DEPTH:
        yield f"playbook: is nested more than {MAX_DEPTH} levels deep"
        return
    yield from unknown_keys(definition, {"cases", "steps", "replies"}, "playbook")
    if "steps" not in definition and not definition.get("cases"):
        yield "playbook: needs steps, cases or both"
    yield from _cases(definition)
    if not isinstance(definition.get("replies", []), list):
        yield "replies: must be a list of lists of steps"
    total = 0
    for where, steps in _step_lists(definition):
        total += sum(1 for _ in _with_inner(steps, where))
        yield from _steps(steps, where)
    if total > MAX_STEPS:
        yield f"playbook: has {total} steps; at most {MAX_STEPS} are allowed"


def _cases(definition: Mapping[str, Json]) -> Iterator[str]:
    cases = definition.get("cases", [])
    if not isinstance(cases, list):
        yield "cases: must be a list of objects with when and steps"
        return
    for index, case in enumerate(cases):
        where = f"cases[{index}]"
        if not isinstance(case, Mapping):
            yield f"{where}: must be an object with when and steps"
            continue
        yield from unknown_keys(case, {"when", "steps"}, where)
        when = case.get("when")
        if not isinstance(when, str) or not when.strip():
            yield f"{where}.when: must be text that the message has to contain"
        if "steps" not in case:
            yield f"{where}.steps: is missing"


def _step_lists(definition: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Every list of steps with its path, whatever type stands in its place."""
    cases, replies = definition.get("cases"), definition.get("replies")
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        if isinstance(case, Mapping) and "steps" in case:
            yield f"cases[{index}].steps", case["steps"]
    if "steps" in definition:
        yield "steps", definition["steps"]
    for index, steps in enumerate(replies if isinstance(replies, list) else []):
        yield f"replies[{index}]", steps


def _with_inner(steps: Json, where: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The steps and the calls of their parallel groups, each with its path."""
    for index, step in enumerate(steps if isinstance(steps, list) else []):
        if isinstance(step, Mapping):
            place = f"{where}[{index}]"
            yield place, step
            inner = step.get("parallel")
            for inner_index, call in enumerate(inner if isinstance(inner, list) else []):
                if isinstance(call, Mapping):
                    yield f"{place}.parallel[{inner_index}]", call


def _steps(steps: Json, where: str) -> Iterator[str]:
    if not isinstance(steps, list):
        yield f"{where}: must be a list of steps"
        return
    for index, step in enumerate(steps):
        yield from step_mistakes(step, f"{where}[{index}]")
    names: set[str] = set()
    for place, step in _with_inner(steps, where):
        name = step.get("as")
        if isinstance(name, str):
            if name in names:
                yield f"{place}.as: an earlier step has the name {quoted(name)} already"
            names.add(name)


def _depth(value: Json) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _dotted(path: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "playbook"
