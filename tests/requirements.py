"""What some tests need besides Python, and what happens where it is missing.

One rule: a missing thing skips the tests that need it, the summary says so in one line per thing, and under
`M3_REQUIRE_ALL=1` (the CI script) it fails them instead. Also a pytest plugin, loaded by `tests/conftest.py`.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

NODE_MODULES = Path(__file__).parent / "node" / "node_modules"

_MARK = "Not run here, missing: "
_NPM = "node 22 and the servers from npm (run `npm ci --ignore-scripts` in tests/node)"
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
_BROWSERS = ("chromium", "chromium-browser")


def require(present: bool, what: str) -> None:
    """Go on if `present`; otherwise skip the test, or fail it under `M3_REQUIRE_ALL=1`.

    `what` names the missing thing and how to get it, in the same words everywhere: the summary counts by it.
    """
    if present:
        return
    if os.environ.get("M3_REQUIRE_ALL") == "1":
        pytest.fail(f"{_MARK}{what}", pytrace=False)
    pytest.skip(f"{_MARK}{what}")


def node_path() -> str:
    """The pinned node 22; the system's may be too old for the conformance scenarios (node 20 dies at import)."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    node = NODE_MODULES / f"node-linux-{architecture}" / "bin" / "node"
    require(node.is_file(), _NPM)
    return str(node)


def npm_script(package: str) -> str:
    """The `dist/index.js` of an installed npm package."""
    script = NODE_MODULES / package / "dist" / "index.js"
    require(script.is_file(), _NPM)
    return str(script)


def chromium_path() -> str:
    """A Chromium that the browser tests may drive."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    require(found is not None, "a chromium (Debian: `apt-get install chromium`)")
    return str(found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One loud line per missing thing. Read from the reports, so that it also works with parallel workers."""
    missing: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, marked, what = reason.partition(_MARK)
        if marked:
            missing[what] = missing.get(what, 0) + 1
    for what, count in sorted(missing.items()):
        tests = "1 test was" if count == 1 else f"{count} tests were"
        terminalreporter.write_line(f"{tests} NOT RUN, missing: {what}", yellow=True, bold=True)
