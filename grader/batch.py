"""Many submissions of one problem: graded side by side, with everything that they share worked out once.

The trials, what the reference gives on them and what the known mistakes give are those of one seed, so that every
submission is judged by the same numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grader.host.engine import Engine
from grader.judge import Submission, Task, grade, new_seed
from grader.report import Report


@dataclass(frozen=True)
class Event:
    """Something that happened in a batch: a submission `started`, or is `finished` and has its report."""

    kind: str
    index: int
    file: str
    done: int
    total: int
    report: Report | None = None


OnEvent = Callable[[Event], None]


def grade_many(
    task: Task,
    submissions: Sequence[Submission],
    engine: Engine,
    *,
    seed: str | None = None,
    device: str = "cpu",
    on_event: OnEvent = lambda event: None,
) -> Iterator[Report]:
    """The report of each submission, in their order, each as soon as it and those before it are there.

    So many run at once as the engine has zygotes. `on_event` is called one call at a time, from other threads. When
    the caller stops early, or is interrupted, what runs is ended and what waits is dropped.
    """
    shared = seed if seed is not None else new_seed()
    tell = _Teller(on_event, len(submissions))

    def one(index: int) -> Report:
        tell("started", index, submissions[index])
        report = grade(task, submissions[index], engine, seed=shared, device=device)
        tell("finished", index, submissions[index], report)
        return report

    # All threads are there before any grades: one started meanwhile would be taken for a thread of a submission's.
    there = threading.Barrier(engine.size)
    pool = ThreadPoolExecutor(engine.size, "grading", initializer=there.wait)
    try:
        for _ in range(engine.size):
            # So that the pool starts every thread, however few submissions there are.
            pool.submit(bool)
        for future in [pool.submit(one, index) for index in range(len(submissions))]:
            yield future.result()
    except BaseException:
        with engine.interrupted():
            pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


class _Teller:
    """Hands events on, one at a time, with how many are done."""

    def __init__(self, on_event: OnEvent, total: int) -> None:
        self._on_event = on_event
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, kind: str, index: int, submission: Submission, report: Report | None = None) -> None:
        with self._lock:
            self._done += report is not None
            self._on_event(Event(kind, index, submission.file, self._done, self._total, report))
