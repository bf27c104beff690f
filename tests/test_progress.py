"""The order of problems, their standing, and what is next."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.progress import (
    Progress,
    Standing,
    TrackCount,
    by_track,
    count,
    next_problem,
    read_progress,
)
from grader.report import Report, Verdict
from grader.spec.load import Summary
from grader.store.errors import StoreUnavailable
from grader.store.store import Attempt, State, open_store


def problem(name: str, level: int = 1, requires: tuple[str, ...] = (), track: str = "mha") -> Summary:
    return Summary(name, name.title(), track, level, 5, "", requires, Path(f"{name}.yaml"), name)


SPLIT = problem("split", 2)
MERGE = problem("merge", 1, ("split",))
WARM = problem("warm", 1)
GROUP = problem("group", 1, ("merge",), "gqa")
ALL = [WARM, SPLIT, MERGE, GROUP]


def progress(last: str | None = None, **states: State) -> Progress:
    attempt = None
    if last is not None:
        attempt = Attempt(
            1, last, "", "2026-01-01T00:00:00+00:00", Verdict.FAILED, 1, "", "", 1.0, 0, 1, "", "", {}
        )
    return Progress(states, attempt, None)


def test_problems_by_track_keep_the_order_of_learning() -> None:
    assert by_track(ALL) == {"mha": [WARM, SPLIT, MERGE], "gqa": [GROUP]}


def test_counts() -> None:
    mine = progress(warm=State.PASSED, split=State.TRIED)
    assert count("mha", [WARM, SPLIT, MERGE], mine) == TrackCount("mha", 1, 1, 3)


def test_the_first_open_problem_is_next() -> None:
    assert next_problem(ALL, progress()) == WARM
    assert next_problem(ALL, progress(warm=State.PASSED)) == SPLIT


def test_the_one_tried_last_is_next_until_it_is_passed() -> None:
    assert next_problem(ALL, progress("merge", merge=State.TRIED)) == MERGE
    assert next_problem(ALL, progress("merge", merge=State.PASSED)) == WARM


def test_a_problem_whose_requirements_are_open_waits() -> None:
    assert next_problem(ALL, progress(warm=State.PASSED, merge=State.PASSED)) == SPLIT


def test_nothing_is_next_when_all_is_passed() -> None:
    passed = progress(**{item.id: State.PASSED for item in ALL})
    assert next_problem(ALL, passed) is None
    assert next_problem([], progress()) is None


def test_a_store_that_cannot_be_read_makes_every_standing_unknown(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database")
    with open_store(tmp_path / "x.db") as store:
        known = read_progress(store)
    assert isinstance(known.trouble, StoreUnavailable)
    assert known.of("split") is Standing.UNKNOWN
    assert next_problem(ALL, known) == WARM


@pytest.mark.parametrize(
    ("verdict", "standing"), [(Verdict.PASSED, Standing.PASSED), (Verdict.FAILED, Standing.TRIED)]
)
def test_progress_is_read_from_the_store(tmp_path: Path, verdict: Verdict, standing: Standing) -> None:
    report = Report("", "split", "", "", "", verdict, "", "cpu", "", "", "", 1.0)
    with open_store(tmp_path / "x.db") as store:
        store.record_attempt(report)
        known = read_progress(store)
    assert (known.of("split"), known.of("warm")) == (standing, Standing.NEW)
    assert known.last is not None
    assert known.last.problem == "split"
