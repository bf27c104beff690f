"""Every test here has a state folder and a working folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli.main import cli
from grader.report import CheckResult, Report, Status, Verdict
from grader.scaffold import scaffold
from grader.store.store import open_store

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]
Record = Callable[..., None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, not made yet; the environment says nothing about colour or width."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "MHAQUIZ_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("MHAQUIZ_HOME", str(folder))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


@pytest.fixture
def run() -> Run:
    """Run a command line in this process."""

    def invoke(*arguments: str, **environment: str) -> Result:
        return CliRunner(env=environment).invoke(cli, list(arguments))

    return invoke


@pytest.fixture
def process() -> Process:
    """Run a command line in a process of its own, as a user does."""

    def invoke(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "grader", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return invoke


@pytest.fixture
def record() -> Record:
    """Keep an attempt at a problem."""

    def keep(problem: str = "split-heads", verdict: Verdict = Verdict.PASSED, **changes: object) -> None:
        checks = (CheckResult("shape", Status.PASSED), CheckResult("values", Status.FAILED))
        base = Report("0", problem, "", "", "f.py", verdict, "1", "cpu", "", "", "plain", 5.0, checks)
        with open_store() as store:
            store.record_attempt(replace(base, **changes))  # type: ignore[arg-type]

    return keep


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack with one small problem, `pair-up` of the track `mine`."""
    files = scaffold("pair-up", "mine")
    folder = tmp_path / "pack"
    for kind, name, text in (
        ("problems", "pair-up.yaml", files.problem),
        ("solutions", "pair-up.py", files.solution),
    ):
        (folder / kind / "mine").mkdir(parents=True)
        (folder / kind / "mine" / name).write_text(text, encoding="utf-8")
    return folder
