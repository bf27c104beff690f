"""What many tests share: one warm engine a process, so that torch is imported once beside the tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from grader.host.engine import Engine
from grader.judge import Submission, Task, grade
from grader.report import Report

Judge = Callable[..., Report]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A warm engine. Start-up overlaps whatever the first test does before it runs a submission."""
    with Engine() as running:
        yield running


@pytest.fixture
def judge(engine: Engine) -> Judge:
    """Grades a source text, on a fixed seed unless told otherwise."""

    @functools.wraps(grade)
    def judged(task: Task, source: str, seed: str = "1", file: str = "answer.py") -> Report:
        return grade(task, Submission(source.encode(), file), engine, seed=seed)

    return judged
