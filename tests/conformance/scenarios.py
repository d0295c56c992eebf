"""The conformance scenarios that concern our client, and how one of them is run."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.requirements import node_path, npm_script

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = ROOT / "tests" / "npm_servers" / "loopback.cjs"
SECONDS = 90
"""What a client may take for one scenario before the runner ends it."""

RELEASE = "@modelcontextprotocol/conformance"
NEXT = "conformance-next"
"""The name under which tests/node/package.json installs the runner's release candidate for 2026-07-28."""


@dataclass(frozen=True)
class Scenario:
    """One scenario of one npm package.

    `checks` is how many of its checks have to pass. `not_ours` names the checks that the runner skips because
    they are about something that our client rightly does not do.
    """

    package: str
    name: str
    checks: int
    not_ours: tuple[str, ...] = ()


SCENARIOS = (
    Scenario(RELEASE, "initialize", 1),
    Scenario(RELEASE, "tools_call", 1),
    Scenario(RELEASE, "elicitation-sep1034-client-defaults", 5),
    Scenario(RELEASE, "sse-retry", 3),
    Scenario(
        NEXT, "request-metadata", 6, ("ClientDeclaresRootsCapability", "ClientDeclaresSamplingCapability")
    ),
    Scenario(NEXT, "sep-2322-client-request-state", 5),
    Scenario(
        NEXT,
        "http-standard-headers",
        10,
        ("ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"),
    ),
    Scenario(NEXT, "http-custom-headers", 18),
    Scenario(NEXT, "http-invalid-tool-headers", 12),
    Scenario(NEXT, "json-schema-ref-no-deref", 1),
    Scenario(NEXT, "json-schema-2020-12-preservation", 9),
)


@dataclass(frozen=True)
class Run:
    """What a finished scenario left: the runner's exit code, its report and the checks it made."""

    exit_code: int
    report: str
    checks: list[dict[str, Any]]

    def names(self, *statuses: str) -> list[str]:
        """The checks that ended with one of these statuses."""
        return [check["name"] for check in self.checks if check["status"] in statuses]

    @property
    def was_only_late(self) -> bool:
        """Whether nothing is wrong but a moment after which the client came back later than it was told.

        `sse-retry` allows 200 ms for that, which a busy machine can exceed by itself.
        """
        wrong = [check for check in self.checks if check["status"] in ("FAILURE", "WARNING")]
        return bool(wrong) and all(check.get("details", {}).get("slightlyLate") for check in wrong)


def run(scenario: Scenario, results: Path) -> Run:
    """Run one scenario against `tests.conformance.client`; its result files go into the folder `results`.

    The runner appends the server's URL to the command and gives it to a shell. Raises
    subprocess.TimeoutExpired if the runner itself hangs; it is ended then.
    """
    client = shlex.join([sys.executable, "-m", "tests.conformance.client"])
    command = [node_path(), "--require", str(LOOPBACK), npm_script(scenario.package), "client"]
    command += ["--command", client, "--scenario", scenario.name]
    command += ["--timeout", str(SECONDS * 1000), "-o", str(results)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS + 30, check=False
    )
    checks = [check for file in results.rglob("checks.json") for check in json.loads(file.read_text())]
    return Run(exit_code=ended.returncode, report=ended.stdout + ended.stderr, checks=checks)
