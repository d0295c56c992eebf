"""The stored form of a rule's condition, how it is found, and how it reads.

Plain module. Stored is {"version": 1, "tests": [{"path": ["to"], "kind": "equals", "value": "ann@example.com"}]}; null
stands for no condition. A condition is small enough that the sentence of its rule always shows all of it (R23).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from approvals.conditions import ArgumentTest, Condition, TestKind
from approvals.facts import Effect
from runs.canonical import NotJson, canonical_json, digest
from runs.errors import ModelValidationError
from runs.steps import Json
from runs.visible import visible

VERSION: Final = 1
MAX_TESTS: Final = 10
MAX_PATH: Final = 10
"""Keys and positions that one path may have."""
MAX_TEXT: Final = 4000
"""Characters of a condition as canonical JSON."""

TESTED: Final = "*"
"""The match key of a condition that has to be tried on the arguments."""

_HELP: Final = (
    'Write it as {"version": 1, "tests": [{"path": ["to"], "kind": "equals", "value": "ann@example.com"}]}.'
)
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def parse_condition(given: Json) -> Condition:
    """The condition that somebody wrote, in its normal order. Raises ModelValidationError for anything else."""
    return normal(read_condition(given))


def read_condition(stored: Json) -> Condition:
    """The condition that `stored_condition` wrote, read on every decision; otherwise as `parse_condition`."""
    if stored is None:
        return ()
    if not isinstance(stored, Mapping) or stored.keys() != {"version", "tests"}:
        raise ModelValidationError(f"This is no condition. {_HELP}")
    # `True == 1` in Python, and is no version.
    if isinstance(stored["version"], bool) or stored["version"] != VERSION:
        raise ModelValidationError(f"Conditions of the version {VERSION} are known here, no others. {_HELP}")
    tests = stored["tests"]
    if not isinstance(tests, list | tuple) or not 1 <= len(tests) <= MAX_TESTS:
        raise ModelValidationError(f"A condition has 1 to {MAX_TESTS} tests; no condition at all is null.")
    return tuple(_parse_test(number, test) for number, test in enumerate(tests, start=1))


def normal(condition: Condition) -> Condition:
    """The same condition with each test once, in one order. Raises ModelValidationError if it is too large."""
    try:
        by_text = {canonical_json(_stored_test(test)): test for test in condition}
    except NotJson as error:
        raise ModelValidationError(f"A condition compares JSON values. {error.message}") from error
    if len(by_text) > MAX_TESTS or sum(map(len, by_text)) > MAX_TEXT:
        raise ModelValidationError(
            f"A condition has at most {MAX_TESTS} tests and {MAX_TEXT:,} characters, so that people can read all of it."
        )
    return tuple(by_text[text] for text in sorted(by_text))


def stored_condition(condition: Condition) -> dict[str, Any] | None:
    """What `read_condition` reads back as the same condition."""
    tests = [_stored_test(test) for test in normal(condition)]
    return {"version": VERSION, "tests": tests} if tests else None


def condition_digest(condition: Condition) -> str:
    """One text per condition, whatever the order of its tests; "" for none."""
    return digest(stored_condition(condition)) if condition else ""


def match_key(condition: Condition) -> str:
    """How rules with this condition are found: "" for every call, the digest of exactly these arguments, or TESTED."""
    if not condition:
        return ""
    wanted = exact_arguments(condition)
    return TESTED if wanted is None else digest(wanted)


def match_keys(arguments: Mapping[str, Json]) -> list[str]:
    """The match keys of all rules that could be about a call with these arguments."""
    try:
        return ["", TESTED, digest(arguments)]
    except NotJson:
        return ["", TESTED]  # no rule is about exactly what is no JSON


def exact_arguments(condition: Condition) -> Mapping[str, Json] | None:
    """The arguments, if the condition is "exactly these arguments"."""
    if len(condition) != 1 or condition[0].path or condition[0].kind is not TestKind.EQUALS:
        return None
    value = condition[0].value
    return value if isinstance(value, Mapping) else None


def has_pattern(condition: Condition) -> bool:
    """Whether a test has wildcards, which only an admin may write (R26)."""
    return any(test.kind is TestKind.GLOB for test in condition)


def check_for(effect: Effect, condition: Condition) -> None:
    """Refuse what a rule of this effect may not test.

    An allow tests what a card shows as a line of its own: an argument, or a member of an argument that is an object; or
    all arguments together. A test of something deeper would let the rest of that line be anything, and nobody who
    reads the card against the rule would see it. Deny and ask rules may test any part: they only make things
    stricter. Raises ModelValidationError.
    """
    for test in condition:
        if not test.path and exact_arguments((test,)) is None:
            raise ModelValidationError("All arguments together are compared with an object, literally.")
        if effect is Effect.ALLOW and not _is_line_of_card(test.path):
            raise ModelValidationError(
                f"An allow tests arguments as the card shows them: {_name(test.path)} is only a part of one. "
                "Test the whole argument, or all arguments."
            )


def condition_words(condition: Condition) -> str:
    """The condition inside the sentence of its rule, complete; starts with a blank, "" for none."""
    if not condition:
        return ""
    wanted = exact_arguments(condition)
    if wanted is not None:
        return f" with exactly the arguments {_value(wanted)}" if wanted else " without any arguments"
    return f" where {' and '.join(map(_test_words, condition))}"


def _parse_test(number: int, test: Json) -> ArgumentTest:
    if not isinstance(test, Mapping) or test.keys() != {"path", "kind", "value"}:
        raise ModelValidationError(
            f"Test {number} of the condition needs exactly path, kind and value. {_HELP}"
        )
    if not isinstance(test["kind"], str) or test["kind"] not in list(TestKind):
        raise ModelValidationError(f"Test {number} of the condition is neither of {', '.join(TestKind)}.")
    try:
        return ArgumentTest(
            path=_path(number, test["path"]), kind=TestKind(test["kind"]), value=test["value"]
        )
    except ValueError as error:
        raise ModelValidationError(f"Test {number} of the condition: {error}") from error


def _path(number: int, path: Json) -> tuple[str | int, ...]:
    if not isinstance(path, list | tuple) or len(path) > MAX_PATH or not all(map(_is_step, path)):
        raise ModelValidationError(
            f"The path of test {number} is a list of at most {MAX_PATH} keys (texts) and positions (from 0)."
        )
    return tuple(path)


def _is_step(step: Json) -> bool:
    return isinstance(step, str) or (isinstance(step, int) and not isinstance(step, bool) and step >= 0)


def _is_line_of_card(path: Sequence[str | int]) -> bool:
    return len(path) <= 2 and all(isinstance(step, str) for step in path)


def _stored_test(test: ArgumentTest) -> dict[str, Any]:
    return {"path": list(test.path), "kind": test.kind.value, "value": test.value}


def _test_words(test: ArgumentTest) -> str:
    return f"{_name(test.path)} {'is' if test.kind is TestKind.EQUALS else 'matches'} {_value(test.value)}"


def _name(path: Sequence[str | int]) -> str:
    """Keys that could be taken for other words of the sentence stand in quotes."""
    return " › ".join(
        f"[{step}]" if isinstance(step, int) else step if _PLAIN_KEY.fullmatch(step) else _value(step)
        for step in path
    )


def _value(value: Json) -> str:
    return visible(canonical_json(value))
