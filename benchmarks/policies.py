"""What a decision of the gate costs with ten rules in the account and with ten thousand, and its share of a step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Report, Series, pair, short, table
from benchmarks.installation import own_environment
from benchmarks.processes import ROOT

RULES = 10_000
SAMPLES = 400

_NAMES = {
    "few": "10 rules",
    "other_tools": "{rules} more, about other tools",
    "other_users": "{rules} more, the same tool for other end users",
    "other_arguments": "{rules} more, the same tool with exactly other arguments",
    "tried": "{rules} more, and the most whose conditions are tried on the call",
}


def run(folder: Path, scale: float) -> Report:
    """Decide `SAMPLES * scale` times in each of the accounts; the number of rules is not scaled."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.policy_account", str(max(20, round(SAMPLES * scale))), str(RULES)],
        cwd=ROOT,
        env=own_environment(os.environ, folder),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, list[float]] = json.loads(output.stdout)
    base = Series(name="base", values=measured["few"])
    rows = [
        _row(Series(name=name.format(rules=f"{RULES:,}"), values=measured[key]), base)
        for key, name in _NAMES.items()
    ]
    step, gate = (Series(name=key, values=measured[key]) for key in ("step", "gate_of_step"))
    return Report(
        title=f"A decision with 10 and with {RULES:,} rules",
        table=table(["p50 / p95 of one decision", "ms", "÷ 10 rules", "samples"], rows),
        notes=[
            f"A step of a run that calls a local tool which does nothing took {short(step.p50)} ms in the account with "
            f"{RULES:,} rules about other tools; the gate, which is asked twice, had {short(gate.p50)} ms of it, "
            f"{gate.p50 / step.p50:.0%}."
        ],
    )


def _row(one: Series, base: Series) -> list[str]:
    multiples = pair(one.p50 / base.p50, one.p95 / base.p50)
    return [one.name, pair(one.p50, one.p95), multiples, str(len(one.values))]
