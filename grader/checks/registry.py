"""The registry of checks, and what a check sees.

A check is a pure function of one `View`: a trial, what the submission did on it and what the reference did.
It returns a Finding or None and never sees a process, a file or a renderer. Its options and what it waits for
are in grader/spec/checks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from grader.inputs import Phase, Trial
from grader.observe import Observation, TensorFacts
from grader.report import Finding, Outcome, Place


@dataclass(frozen=True)
class View:
    """Everything that one trial offers a check.

    `expected` is the reference on the same trial; `oracle` the reference on the same numbers in double precision
    (hygiene trials); `twin` what the submission itself did on the trial's twin; `late` whether results of this
    trial had other contents at a second look; `axes` the names of each result's axes.
    """

    index: int
    trial: Trial
    actual: Observation
    expected: Observation | None = None
    oracle: Observation | None = None
    twin: Observation | None = None
    late: bool = False
    axes: tuple[tuple[str, ...], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """An ordinary call: not traced, not for gradients, not bad input, not one of a causal pair."""
        special = self.trial.traced or self.trial.gradient_of or self.trial.raises or self.causal
        return not special

    @property
    def causal(self) -> bool:
        """One of a pair that differs only in later positions."""
        return self.trial.only == frozenset(["causality"])

    def finding(self, check: str, code: str, place: Place | None = None, **data: Any) -> Finding:
        """A finding on this trial. Data that names a result says how many there are, if more than one."""
        count = len(self.expected.results) if self.expected is not None else 1
        if count == 1 and self.expected is not None:
            count = len(self.expected.leaves())
        if "result" in data and count > 1:
            data["results"] = count
        return Finding(check, code, data, self.index, place)

    def leaves(self) -> Iterator[tuple[int, TensorFacts, TensorFacts]]:
        """Each result tensor: its number, the reference's and the submission's."""
        assert self.expected is not None
        pairs = zip(self.expected.leaves(), self.actual.leaves(), strict=True)
        for number, (expected, actual) in enumerate(pairs):
            yield number, expected, actual


Check = Callable[[View], Finding | None]


@dataclass(frozen=True)
class Registered:
    """A check and the trials it looks at."""

    name: str
    applies: Callable[[View], bool]
    judge: Check


CHECKS: dict[str, Registered] = {}


def returned(view: View) -> bool:
    """An ordinary trial on which both versions returned."""
    return view.plain and view.expected is not None and view.actual.outcome is Outcome.RETURNED


def check(name: str, applies: Callable[[View], bool] = returned) -> Callable[[Check], Check]:
    """Registers a check under its name."""

    def register(judge: Check) -> Check:
        if name in CHECKS:
            raise ValueError(f"there are two checks called {name}")
        CHECKS[name] = Registered(name, applies, judge)
        return judge

    return register


@contextmanager
def registered(name: str, entry: Registered) -> Iterator[None]:
    """For tests: a further check inside the block."""
    CHECKS[name] = entry
    try:
        yield
    finally:
        del CHECKS[name]


def is_exact(view: View) -> bool:
    """Whether results are compared bit for bit."""
    return view.trial.phase is Phase.EXACT
