"""`python -m tests.on_postgres [pytest arguments]`: the tests that meet the database, on PostgreSQL and Redis.

Not here: what knows no database (`tests/core`, `tests/mcp`, `tests/npm_servers`, `tests/conformance`), what works on
SQLite files of its own whatever the installation has (`tests/handles`, and `ON_FILES`), what brings servers of its own
in either pass (`tests/fleet`, `tests/engines`), and of the browser all but its main job. Where a server is missing this
says so and succeeds; under `M3_REQUIRE_ALL=1` it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import requirements

TESTS = (
    "tests/services",
    "tests/worker",
    "tests/api",
    "tests/push",
    "tests/pages",
    "tests/differential",
    "tests/browser/test_main_job.py",
)

ON_FILES = (
    "tests/services/test_database_files.py",
    "tests/services/test_migrations.py",
    "tests/services/test_older_rows.py",
    "tests/services/test_up_command.py",
    "tests/services/managed_input/test_sqlite_file.py",
    "tests/services/managed_input/test_unusable_files.py",
)
"""They would do here once more exactly what they do in the other pass."""

REPEATS = 20
"""What chance has a part in is repeated in full on SQLite; here it only has to show that the locks are right too."""


def main(arguments: list[str]) -> int:
    """Run pytest with the two servers in its environment; gives its exit code."""
    try:
        urls = {"DATABASE_URL": requirements.postgres_url(), "REDIS_URL": requirements.redis_url()}
    except pytest.skip.Exception as missing:
        print(f"The tests were NOT RUN on PostgreSQL. {missing}", flush=True)
        return 0
    except pytest.fail.Exception as missing:
        print(missing, file=sys.stderr)
        return 1
    with requirements.servers:
        known = {"M3_TEST_POSTGRES_URL": urls["DATABASE_URL"], "M3_TEST_REDIS_URL": urls["REDIS_URL"]}
        chosen = () if any(argument.startswith("tests/") for argument in arguments) else TESTS
        left_out = [f"--ignore={path}" for path in ON_FILES if not any(path in each for each in arguments)]
        command = [sys.executable, "-m", "pytest", *arguments, *chosen, *left_out]
        fewer = {"M3_TEST_REPEATS": str(min(requirements.repeats(), REPEATS))}
        return subprocess.run(command, env={**os.environ, **urls, **known, **fewer}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
