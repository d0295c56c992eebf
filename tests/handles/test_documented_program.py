"""The programs of docs/managed-input.md run as they stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.core.pages import examples
from tests.mcp.bindings import ROOT

PAGE = "docs/managed-input.md"


def block(kind: str) -> str:
    (found,) = [text for name, text in examples(PAGE, "python") if name == kind]
    return found


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "M3_DATA_DIR": str(folder / "var")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_the_program_books_the_shipment_with_the_address_that_it_was_asked_for(tmp_path: Path) -> None:
    shown = "print(result.outcome, result.calls[0].result['address']['city'])\n"
    ended = run(block("server") + block("program") + shown, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "completed Pune\n"), ended.stderr
    assert ended.stderr == ""
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"executions.sqlite", "executions.sqlite.lock", "var"}
    assert {path.name for path in (tmp_path / "var").iterdir()} == {"secret_key", "encryption_salt", "static"}


def test_every_other_program_of_the_page_compiles() -> None:
    others = [text for name, text in examples(PAGE, "python") if not name]
    assert len(others) == 2
    for text in others:
        compile(text, PAGE, "exec")
