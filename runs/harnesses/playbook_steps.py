"""What is wrong with one step of a playbook (design section 3).

Plain module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from runs.harnesses.playbook_expressions import TemplateError, compile_expression, is_template, parse
from runs.harnesses.playbook_mistakes import quoted, unknown_keys
from runs.harnesses.playbook_questions import question_mistakes
from runs.steps import MAX_SERVER_NAME, Json

MAX_SLEEP: Final = 86_400
_MAX_TARGET: Final = 300
_MAX_AGENT: Final = 120
"""Characters of an agent's name."""

RESERVED_NAMES: Final = frozenset({"message", "user_id", "metadata"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "say": frozenset(),
    "call": frozenset({"args", "as"}),
    "prompt": frozenset({"args", "as"}),
    "read": frozenset({"as"}),
    "ask": frozenset({"as"}),
    "plan": frozenset({"as"}),
    "parallel": frozenset(),
    "run": frozenset({"as"}),
    "sleep": frozenset(),
    "fail": frozenset(),
    "finish": frozenset(),
}
"""Each kind of step, and the keys it may have beside `if` and `required`."""
_EVERY_STEP: Final = frozenset({"if", "required"})


def step_mistakes(step: Json, where: str, *, only_call: bool = False) -> Iterator[str]:
    """Mistakes in one step as "path: what is wrong"; `only_call` inside a parallel group."""
    if not isinstance(step, Mapping):
        yield f"{where}: must be an object"
        return
    kinds = [kind for kind in _KEYS if kind in step]
    if len(kinds) != 1:
        yield f"{where}: {_wrong_kinds(step, kinds)}"
        return
    kind = kinds[0]
    if only_call and kind != "call":
        yield f"{where}: parallel takes calls only, not {kind}"
        return
    yield from unknown_keys(step, {kind} | _KEYS[kind] | _EVERY_STEP, where)
    if "if" in step:
        yield from _condition(step["if"], f"{where}.if")
    if not isinstance(step.get("required", False), bool):
        yield f"{where}.required: must be true or false"
    if "as" in step and "as" in _KEYS[kind]:
        yield from _name(step["as"], f"{where}.as")
    yield from _CHECKS[kind](step, f"{where}.{kind}")


def _wrong_kinds(step: Mapping[str, Json], kinds: Sequence[str]) -> str:
    if kinds:
        return f"has several kinds ({', '.join(kinds)}); one step does one thing"
    keys = ", ".join(quoted(key) for key in islice(step, 5)) or "nothing"
    return f"is no known step (it has {keys}); expected one of {', '.join(_KEYS)}"


def _condition(value: Json, where: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{where}: must be a JMESPath expression as text"
        return
    if is_template(value):
        yield f"{where}: is an expression by itself; write it without {{{{ }}}}"
        return
    try:
        compile_expression(value)
    except TemplateError as error:
        yield f"{where}: {error.message}"


def _name(value: Json, where: str) -> Iterator[str]:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        yield f"{where}: must be a name of up to 64 letters, digits and _, not starting with a digit"
    elif value in RESERVED_NAMES:
        yield f"{where}: the name {value} is taken ({', '.join(sorted(RESERVED_NAMES))})"


def _templates(value: Json, where: str) -> Iterator[str]:
    """Broken templates anywhere in a value."""
    if isinstance(value, str):
        try:
            parse(value)
        except TemplateError as error:
            yield f"{where}: {error.message}"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _templates(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _templates(inner, f"{where}[{index}]")


def _text(value: Json, where: str) -> Iterator[str]:
    if isinstance(value, str):
        yield from _templates(value, where)
    else:
        yield f"{where}: must be text"


def _target(value: Json, where: str) -> Iterator[str]:
    server, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (server.strip() and colon and name.strip()):
        yield f'{where}: must be "server:name"'
    elif is_template(value):
        yield f"{where}: must be written out; expressions are for args and texts"
    elif len(value) > _MAX_TARGET or len(server) > MAX_SERVER_NAME:
        yield (
            f"{where}: has at most {_MAX_TARGET} characters, of which the server's name has at most "
            f"{MAX_SERVER_NAME}"
        )
    elif not value.isprintable():
        yield f"{where}: has a character that no name has"


def _check_text(kind: str) -> Callable[[Mapping[str, Json], str], Iterator[str]]:
    return lambda step, where: _text(step[kind], where)


def _check_call(step: Mapping[str, Json], where: str) -> Iterator[str]:
    place = f"{where.removesuffix('call')}args"
    yield from _target(step["call"], where)
    if not isinstance(step.get("args", {}), Mapping):
        yield f"{place}: must be an object"
    else:
        yield from _templates(step.get("args", {}), place)


def _check_prompt(step: Mapping[str, Json], where: str) -> Iterator[str]:
    place = f"{where.removesuffix('prompt')}args"
    yield from _target(step["prompt"], where)
    args = step.get("args", {})
    if not isinstance(args, Mapping):
        yield f"{place}: must be an object"
        return
    for name, value in args.items():
        yield from _text(value, f"{place}.{name}")


def _check_read(step: Mapping[str, Json], where: str) -> Iterator[str]:
    yield from _target(step["read"], where)


def _check_ask(step: Mapping[str, Json], where: str) -> Iterator[str]:
    ask = step["ask"]
    if not isinstance(ask, Mapping):
        yield f"{where}: must be an object with questions"
        return
    yield from unknown_keys(ask, {"questions", "blocking"}, where)
    if not isinstance(ask.get("blocking", True), bool):
        yield f"{where}.blocking: must be true or false"
    yield from _templates(ask.get("questions"), f"{where}.questions")
    yield from question_mistakes(ask.get("questions"), f"{where}.questions", templates=True)


def _check_plan(step: Mapping[str, Json], where: str) -> Iterator[str]:
    texts = step["plan"]
    if not isinstance(texts, list) or not texts:
        yield f"{where}: must be a list of at least one text"
        return
    for index, text in enumerate(texts):
        yield from _text(text, f"{where}[{index}]")
        if isinstance(text, str) and not text.strip():
            yield f"{where}[{index}]: must not be empty"


def _check_parallel(step: Mapping[str, Json], where: str) -> Iterator[str]:
    calls = step["parallel"]
    if not isinstance(calls, list) or not calls:
        yield f"{where}: must be a list of at least one call"
        return
    for index, call in enumerate(calls):
        yield from step_mistakes(call, f"{where}[{index}]", only_call=True)


def _check_run(step: Mapping[str, Json], where: str) -> Iterator[str]:
    run = step["run"]
    if not isinstance(run, Mapping):
        yield f"{where}: must be an object with agent and message"
        return
    yield from unknown_keys(run, {"agent", "message"}, where)
    if not isinstance(run.get("agent"), str) or not run["agent"].strip():
        yield f"{where}.agent: must be the name of an agent"
    elif is_template(run["agent"]):
        yield f"{where}.agent: must be written out; expressions are for args and texts"
    elif len(run["agent"]) > _MAX_AGENT or not run["agent"].isprintable():
        yield f"{where}.agent: has at most {_MAX_AGENT} printable characters"
    yield from _text(run.get("message"), f"{where}.message")


def _check_sleep(step: Mapping[str, Json], where: str) -> Iterator[str]:
    seconds = step["sleep"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_SLEEP:
        yield f"{where}: must be a number of seconds from 0 to {MAX_SLEEP:,}"


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Json], str], Iterator[str]]]] = {
    "say": _check_text("say"),
    "call": _check_call,
    "prompt": _check_prompt,
    "read": _check_read,
    "ask": _check_ask,
    "plan": _check_plan,
    "parallel": _check_parallel,
    "run": _check_run,
    "sleep": _check_sleep,
    "fail": _check_text("fail"),
    "finish": _check_text("finish"),
}
