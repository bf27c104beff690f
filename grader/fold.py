"""From observations to check results without words: which check found what, and which had to wait.

The same folding serves submissions, right versions and known mistakes, so that they are compared alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import grader.checks  # noqa: F401 - registers the checks
from grader.checks.registry import CHECKS, View
from grader.errors import Mistake, ProblemFileError
from grader.inputs import Phase, Trial
from grader.observe import Observation
from grader.plan import options_of
from grader.report import Finding, Outcome, Status
from grader.spec.checks import CHECKS as KINDS
from grader.spec.model import Problem
from grader.spec.shapes import parse_shape
from grader.versions import Versions


@dataclass(frozen=True)
class Fold:
    """One check over all trials."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    waits_for: str | None = None
    reason: str | None = None


def checks_of(problem: Problem) -> list[str]:
    """The checks of a problem, in the order in which they are judged and shown."""
    used = {use.name for use in problem.checks}
    return [name for name, kind in KINDS.items() if kind.always or name in used]


def views(
    problem: Problem,
    trials: Sequence[Trial],
    actuals: Sequence[Observation | None],
    versions: Versions,
    late: frozenset[int] = frozenset(),
) -> list[View]:
    """What each observed trial offers the checks."""
    axes = tuple(parse_shape(text).labels for text in _returns(problem))
    made = []
    for index, (trial, actual) in enumerate(zip(trials, actuals, strict=True)):
        if actual is None:
            continue
        expected = _expected(versions, trial)
        if expected is not None and expected.outcome is not Outcome.RETURNED:
            raise _no_answer(trial, expected, versions)
        oracle = _oracle(versions, trial)
        twin = _twin(trial, trials, actuals)
        made.append(View(index, trial, actual, expected, oracle, twin, index in late, axes))
    return made


def observe_reference(versions: Versions, trial: Trial) -> None:
    """Works out, and remembers, everything that `views` will need of the reference on a trial."""
    _expected(versions, trial)
    _oracle(versions, trial)


def _expected(versions: Versions, trial: Trial) -> Observation | None:
    """The reference on the same trial; nobody asks it about bad input, or which operations it runs."""
    return None if trial.raises or trial.traced else versions.observe("reference", trial)


def _oracle(versions: Versions, trial: Trial) -> Observation | None:
    """The reference in double precision on the same numbers, for the trials that are judged by it."""
    if trial.phase is not Phase.HYGIENE or trial.traced:
        return None
    return versions.observe("reference", trial.in_precision("float64"))


def _no_answer(trial: Trial, expected: Observation, versions: Versions) -> ProblemFileError:
    """The reference itself fails on a case: nothing can be judged by it."""
    raised = expected.raised
    line = raised.place.line if raised is not None and raised.place is not None else 1
    how = f"raised {raised.type}: {raised.message}" if raised is not None else str(expected.outcome)
    message = f"the reference {how} on case `{trial.case}` in {trial.dtype}"
    return ProblemFileError([Mistake(versions.filename, line, 1, message)])


def _returns(problem: Problem) -> list[str]:
    return [problem.returns] if isinstance(problem.returns, str) else list(problem.returns)


def _twin(trial: Trial, trials: Sequence[Trial], actuals: Sequence[Observation | None]) -> Observation | None:
    """The observation that a trial is compared with; for a traced trial the untraced one of its case."""
    if trial.twin is not None:
        return actuals[trial.twin.index]
    if trial.traced:
        for other, actual in zip(trials, actuals, strict=True):
            if other.case == trial.case and other.profiled and actual is not None:
                return actual
    return None


def fold(problem: Problem, seen: Sequence[View], planned: int) -> list[Fold]:
    """Every check of the problem over the views; `planned` is how many trials there should have been."""
    folds: dict[str, Fold] = {}
    for name in checks_of(problem):
        folds[name] = _fold_one(problem, name, seen, folds, complete=len(seen) == planned)
    return list(folds.values())


def _fold_one(
    problem: Problem, name: str, seen: Sequence[View], folds: Mapping[str, Fold], *, complete: bool
) -> Fold:
    blocker = next(
        (w for w in KINDS[name].waits_for if w in folds and folds[w].status is not Status.PASSED), None
    )
    if blocker is not None:
        root = folds[blocker].waits_for or blocker
        return Fold(name, Status.SKIPPED, waits_for=root, reason=f"waits for {root}")
    entry, options = CHECKS[name], options_of(problem, name) or {}
    findings = []
    looked = 0
    for view in seen:
        if (view.trial.looks_at(name) or name == "returns") and entry.applies(view):
            looked += 1
            found = entry.judge(replace(view, options=options) if options else view)
            findings += [found] if found is not None else []
    if findings:
        return Fold(name, Status.FAILED, tuple(findings))
    if not complete:
        return Fold(name, Status.SKIPPED, reason="the run ended before this check was done")
    if not looked and name in {use.name for use in problem.checks}:
        return Fold(name, Status.ERRORED, reason="no case of this problem lets the check look at anything")
    return Fold(name, Status.PASSED)


def failed_trials(folds: Sequence[Fold]) -> frozenset[int]:
    """The trials on which some check found something."""
    return frozenset(f.trial for fold in folds for f in fold.findings if f.trial is not None)


def returned(observation: Observation | None) -> bool:
    """Whether a trial was run and returned."""
    return observation is not None and observation.outcome is Outcome.RETURNED
