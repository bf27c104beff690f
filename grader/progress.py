"""How far the learner is: the state of each problem, and which one is next.

Pure functions over summaries and states; the one function that reads the store turns a store that cannot be
used into "unknown" and hands the reason back, so that a list never fails over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.spec.load import Summary
from grader.store.errors import StoreUnavailable
from grader.store.store import Attempt, State, Store


class Standing(StrEnum):
    """A problem's state as shown: the store's, or unknown when the store cannot be read."""

    NEW = "new"
    TRIED = "tried"
    PASSED = "passed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Progress:
    """What the store knows of this user; `trouble` says why it knows nothing."""

    states: Mapping[str, State]
    last: Attempt | None
    trouble: StoreUnavailable | None

    def of(self, problem: str) -> Standing:
        """The standing of one problem."""
        if self.trouble is not None:
            return Standing.UNKNOWN
        return Standing(self.states.get(problem, State.NEW))


@dataclass(frozen=True)
class TrackCount:
    """How many of a track's problems are passed and tried."""

    track: str
    passed: int
    tried: int
    total: int


def read_progress(store: Store) -> Progress:
    """The states and the last attempt; never raises."""
    try:
        return Progress(store.states(), store.last_attempt(), None)
    except StoreUnavailable as trouble:
        return Progress({}, None, trouble)


def by_track(problems: Iterable[Summary]) -> dict[str, list[Summary]]:
    """The problems of each track; the order is the library's, which is the order of learning."""
    tracks: dict[str, list[Summary]] = {}
    for problem in problems:
        tracks.setdefault(problem.track, []).append(problem)
    return tracks


def count(track: str, problems: Sequence[Summary], progress: Progress) -> TrackCount:
    """The counts of one track."""
    standings = [progress.of(problem.id) for problem in problems]
    return TrackCount(track, standings.count(Standing.PASSED), standings.count(Standing.TRIED), len(problems))


def next_problem(problems: Sequence[Summary], progress: Progress) -> Summary | None:
    """What to do next: the problem tried last if it is not passed, else the first whose requirements are.

    None when everything is passed.
    """
    open_ones = [problem for problem in problems if progress.of(problem.id) is not Standing.PASSED]
    for problem in open_ones:
        if progress.last is not None and problem.id == progress.last.problem:
            return problem
    present = {problem.id for problem in problems}
    for problem in open_ones:
        needs = [need for need in problem.requires if need in present]
        if all(progress.of(need) is Standing.PASSED for need in needs):
            return problem
    return open_ones[0] if open_ones else None
