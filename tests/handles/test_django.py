"""Importing the handles sets Django up once, where none is, and touches nothing else of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import django
import pytest

from runs.handles import django_setup
from tests.mcp.bindings import ROOT


def run(program: str, folder: Path, **environment: str) -> list[str]:
    clean = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), "M3_DATA_DIR": str(folder / "var"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


def test_a_program_without_django_gets_the_products_settings_and_keeps_its_logging(tmp_path: Path) -> None:
    program = (
        "import logging, os; mine = logging.NullHandler(); logging.getLogger().addHandler(mine)\n"
        "import runs.handles, runs.handles\n"
        "from django.conf import settings\n"
        "print(os.environ['DJANGO_SETTINGS_MODULE'], settings.ROOT_URLCONF, logging.getLogger().handlers == [mine])"
    )
    assert run(program, tmp_path) == ["m3web.settings", "m3web.urls", "True"]
    assert [path.name for path in tmp_path.iterdir()] == ["var"]


def test_a_program_with_settings_of_its_own_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from m3web.settings import *\nOWN = 'own'\n")
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "import runs.handles\n"
        "from django.conf import settings\n"
        "print(settings.OWN)"
    )
    assert run(program, tmp_path, DJANGO_SETTINGS_MODULE="own") == ["own"]


def test_inside_a_running_django_nothing_is_set_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(django, "setup", lambda: pytest.fail("set up twice"))
    django_setup.ensure()
