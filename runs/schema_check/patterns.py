"""ECMA-262 patterns from untrusted schemas, matched without letting one hold the process (R33).

`regress` gives the semantics that JSON Schema asks for, but it backtracks, and holds the interpreter lock
while it does. Three bounds keep a hostile pattern harmless:

1. patterns over MAX_PATTERN_CHARS and texts over MAX_TEXT_CHARS are refused;
2. a pattern's worst case is estimated from its shape (`pattern_cost`); only cheap ones run in this process;
3. everything else runs in a child process with a limit on processor time and memory (`pattern_child`).

A match that hits a bound raises PatternUndecided; it never counts as "matches" or "does not match".
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import regress

from runs.schema_check import pattern_child
from runs.schema_check.pattern_cost import worst_case_steps

MAX_PATTERN_CHARS = 1_000
MAX_TEXT_CHARS = 10_000
MAX_STEPS_IN_PROCESS = 3_000_000
"""About a tenth of a second of backtracking on a slow machine."""

CHILD_WALL_SECONDS = 10.0
"""A last bound for a child that is starved rather than busy."""


class PatternProblem(ValueError):
    """The pattern does not compile; the message says why."""


class PatternUndecided(Exception):
    """The match was given up at a bound; the message is a sentence for a person."""


def check_pattern(pattern: str) -> None:
    """Raise PatternProblem unless `pattern` is an ECMA-262 regular expression within the bounds."""
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` is found anywhere in `text`, as JSON Schema means it (patterns are not anchored).

    Raises PatternProblem for a pattern that does not compile and PatternUndecided at a bound.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise PatternUndecided(
            f"A text longer than {MAX_TEXT_CHARS:,} characters cannot be checked against a pattern."
        )
    compiled, flags = _compiled(pattern)
    if worst_case_steps(pattern, len(text)) <= MAX_STEPS_IN_PROCESS:
        return compiled.find(text) is not None
    return _matches_in_child(pattern, flags, text)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[regress.Regex, str]:
    """Compile with the `u` flag (JSON Schema's advice), or without it for patterns that only work so.

    Older servers write `\\-` and the like, which the `u` flag forbids.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternProblem(f"is longer than {MAX_PATTERN_CHARS:,} characters")
    try:
        return regress.Regex(pattern, "u"), "u"
    except regress.RegressError:
        pass
    try:
        return regress.Regex(pattern), ""
    except regress.RegressError as error:
        raise PatternProblem(str(error)) from None


@lru_cache(maxsize=512)
def _matches_in_child(pattern: str, flags: str, text: str) -> bool:
    """Decide in a child process; decisions are remembered, so page and store pay for it once."""
    command = [sys.executable, "-I", "-S", pattern_child.__file__, str(Path(regress.__file__).parents[1])]
    job = json.dumps({"pattern": pattern, "flags": flags, "text": text}).encode()
    try:
        done = subprocess.run(
            command, input=job, capture_output=True, timeout=CHILD_WALL_SECONDS, check=True, env={}
        )
        return bool(json.loads(done.stdout)["match"])
    except (subprocess.SubprocessError, OSError, ValueError, KeyError):
        raise PatternUndecided("The pattern took too long to check against this text.") from None
