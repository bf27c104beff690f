"""What many tests share: one warm engine a process, so that torch is imported once beside the tests.

torch is imported by the fixtures only: tests of what is drawn, read and kept do without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from grader.host.engine import Engine
    from grader.judge import Task
    from grader.report import Report


class Judge(Protocol):
    """Grades a source text, on a fixed seed unless told otherwise."""

    def __call__(self, task: Task, source: str, seed: str = "1", file: str = "answer.py") -> Report: ...


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A warm engine. Start-up overlaps whatever the first test does before it runs a submission."""
    from grader.host.engine import Engine

    with Engine() as running:
        yield running


@pytest.fixture(scope="session", params=["bubblewrap", "landlock", "plain"])
def enclosed(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A warm engine in every sandbox. One that does not work here is skipped, unless it is required."""
    from grader.host.engine import Engine
    from grader.host.sandbox import backends

    sandbox = next(sandbox for sandbox in backends() if sandbox.name == request.param)
    reason = sandbox.available()
    if reason is not None:
        (pytest.fail if os.environ.get("MHAQUIZ_REQUIRE_SANDBOX") else pytest.skip)(reason)
    with Engine(sandbox) as running:
        yield running


@pytest.fixture
def judge(engine: Engine) -> Judge:
    """Judges submissions one by one on the warm engine."""
    from grader.judge import Submission, grade

    def judged(task: Task, source: str, seed: str = "1", file: str = "answer.py") -> Report:
        return grade(task, Submission(source.encode(), file), engine, seed=seed)

    return judged
