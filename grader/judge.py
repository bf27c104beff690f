"""One submission, one report: the order of events and nothing else.

plan trials -> run the submission -> observe the reference -> fold the checks -> confirm what only low
precision showed -> name the mistake -> word everything.
"""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from grader import explain, mistakes
from grader.errors import GraderError, MhaquizError
from grader.fold import Fold, failed_trials, fold, observe_reference, views
from grader.guest import harness
from grader.guest.wire import Malformed, Request
from grader.host.engine import Engine, Run
from grader.host.limits import MIB, Limits
from grader.inputs import Phase, Planner, Trial
from grader.observe import Observation, decode, digests
from grader.plan import plan, redraw, with_cotangents
from grader.report import CaseResult, Finding, NamedMistake, Outcome, Report, RunSummary, Status, Verdict
from grader.spec.model import Case, ErrorCase, Problem
from grader.version import VERSION
from grader.versions import Versions, entries_of

_CONFIRMING_DRAWS = 2
_CONFIRMED_TRIALS = 3
_LEAST_RESULT_BYTES = 64 * MIB


@dataclass(frozen=True)
class Submission:
    """What was handed in: its bytes and the name under which it is spoken of."""

    source: bytes
    file: str

    @property
    def filename(self) -> str:
        """The file's own name, for the runner."""
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return (
            name
            if name.endswith(".py") and name.isprintable() and len(name.encode()) < 100
            else "submission.py"
        )

    @property
    def text(self) -> str:
        """The source as text, for showing."""
        try:
            return harness.decode_source(self.source)
        except harness.LoadFailure:
            return self.source.decode("utf-8-sig", errors="replace")


@dataclass(frozen=True)
class Task:
    """A problem made ready to judge by."""

    problem: Problem
    versions: Versions
    revision: str


@dataclass(frozen=True)
class _Judged:
    """A submission's observations and what the checks say of them."""

    trials: list[Trial]
    run: Run
    actuals: list[Observation | None]
    folds: list[Fold]


def new_seed() -> str:
    """A fresh secret seed."""
    return secrets.token_hex(8)


def grade(
    task: Task, submission: Submission, engine: Engine, *, seed: str | None = None, device: str = "cpu"
) -> Report:
    """Grades one submission. A fault of the grader's becomes a report with the verdict `grader_error`."""
    started = time.monotonic()
    blank = Report(
        version=VERSION,
        problem=task.problem.id,
        title=task.problem.title,
        problem_revision=task.revision,
        file=submission.file,
        verdict=Verdict.GRADER_ERROR,
        seed=seed if seed is not None else new_seed(),
        device=device,
        torch=torch.__version__,
        python=platform.python_version(),
        sandbox=engine.sandbox.name,
        duration_ms=0.0,
        source=submission.text,
    )
    task.versions.begin(blank.seed)
    try:
        report = _grade(task, submission, engine, blank)
    except MhaquizError as error:
        report = replace(blank, error={**error.to_json(), "exit_code": error.exit_code})
    return replace(report, duration_ms=(time.monotonic() - started) * 1000)


def _grade(task: Task, submission: Submission, engine: Engine, blank: Report) -> Report:
    if explain.unchanged_starter(task.problem, submission.text):
        return replace(blank, verdict=Verdict.NOT_STARTED, notes=(explain.NOT_STARTED,))
    judged = _judge(task, submission, engine, blank.seed, blank.device)
    if judged.run.load_failure is not None:
        return replace(
            blank, **explain.load_failure(task.problem, submission.file, submission.text, judged.run)
        )
    folds = _confirm(task, submission, engine, blank, judged)
    judged = replace(judged, folds=folds)
    passed = all(entry.status is Status.PASSED for entry in folds)
    errored = any(entry.status is Status.ERRORED for entry in folds)
    words = explain.Words(
        task.problem, submission.text, submission.file, judged.trials, judged.actuals, task.versions
    )
    return replace(
        blank,
        verdict=Verdict.PASSED if passed else Verdict.GRADER_ERROR if errored else Verdict.FAILED,
        checks=tuple(words.check(entry) for entry in folds),
        cases=tuple(_cases(task.problem, judged)),
        mistakes=() if passed else tuple(_named(task, judged)),
        operations=words.operations(),
        run=_summary(judged, submission),
        notes=tuple(words.notes()),
        error=_errored(task.problem, folds) if errored else None,
    )


def _judge(task: Task, submission: Submission, engine: Engine, seed: str, device: str) -> _Judged:
    run, trials, actuals = _run(task, submission, engine, lambda: _trials(task, seed, device))
    if run.load_failure is not None:
        return _Judged(trials, run, actuals, [])
    seen = views(task.problem, trials, actuals, task.versions, _late(actuals, run))
    return _Judged(trials, run, actuals, fold(task.problem, seen, len(trials)))


def _trials(task: Task, seed: str, device: str) -> list[Trial]:
    """The trials of a seed, made once however many submissions are judged with it."""
    key = ("trials", device)
    if key not in task.versions.memo:
        planner = Planner(task.problem, seed, device)
        task.versions.memo[key] = [_prepared(task, trial, seed) for trial in plan(planner)]
    found: list[Trial] = task.versions.memo[key]
    return found


def _prepared(task: Task, trial: Trial, seed: str) -> Trial:
    """Gradient trials get their cotangents, which need the shapes of the expected results."""
    if not (trial.gradient_of or trial.parameters):
        return trial
    bare = replace(trial, gradient_of=(), parameters=False, key=trial.key + "/bare")
    return with_cotangents(trial, task.versions.observe("reference", bare), seed)


def _run(
    task: Task, submission: Submission, engine: Engine, plan_trials: Callable[[], list[Trial]]
) -> tuple[Run, list[Trial], list[Observation | None]]:
    """Runs the trials. A trial during which the run ended gets its outcome; later ones get None.

    What the trials are, and what the reference gives on them, is worked out while the runner works.
    """
    trials: list[Trial] = []

    def requests() -> Iterator[Request]:
        trials.extend(plan_trials())
        yield from map(_request, trials)

    run = engine.run(
        submission.source,
        submission.filename,
        entries_of(task.problem),
        requests(),
        limits(task.problem),
        meanwhile=lambda index: observe_reference(task.versions, trials[index]),
    )
    trials = trials or plan_trials()
    lines = harness.source_lines(submission.text)
    actuals: list[Observation | None] = [None] * len(trials)
    for index, frame in enumerate(run.frames[: len(trials)]):
        try:
            actuals[index] = _answering(trials[index], decode(frame, lines))
        except Malformed as error:
            actuals[index] = Observation(Outcome.REFUSED, detail=str(error))
            return replace(run, outcome=Outcome.REFUSED, detail=str(error)), trials, actuals
    if run.outcome is not Outcome.RETURNED and run.load_failure is None:
        actuals[_ended_at(trials, len(run.frames))] = Observation(run.outcome, detail=run.detail)
    return run, trials, actuals


def _ended_at(trials: Sequence[Trial], answered: int) -> int:
    """The trial that an ended run is told of: the one that had no answer, or else the last ordinary call."""
    if answered < len(trials):
        return answered
    plain = [i for i, trial in enumerate(trials) if not (trial.traced or trial.raises or trial.gradient_of)]
    return plain[-1] if plain else len(trials) - 1


def _request(trial: Trial) -> Request:
    largest = max((b.numel() * b.element_size() for b in trial.buffers), default=0)
    return trial.request(max(_LEAST_RESULT_BYTES, 4 * largest))


def _answering(trial: Trial, observation: Observation) -> Observation:
    """The observation, if it answers the trial: so many results and inputs as there were. Raises Malformed."""
    buffers = len(trial.buffers) + sum(cotangent is not None for cotangent in trial.cotangents)
    right = len(observation.inputs_after) == len(observation.versions) == buffers
    if observation.outcome is Outcome.RETURNED:
        right = right and len(observation.results) == sum(bool(step.get("observe")) for step in trial.steps)
        right = right and all(
            leaf.buffer is None or 0 <= leaf.buffer < buffers for leaf in observation.leaves()
        )
        right = right and (observation.gradient is not None or not (trial.gradient_of or trial.parameters))
    elif observation.outcome is not Outcome.RAISED or observation.raised is None:
        right = False
    if observation.gradient is not None and observation.gradient.raised is None:
        asked = [a.view.shape for name in trial.gradient_of for a in trial.arguments if a.name == name]
        got = [None if g is None else tuple(g.shape) for g in observation.gradient.inputs]
        right = right and len(got) == len(asked)
        right = right and all(g is None or g == tuple(a) for g, a in zip(got, asked, strict=False))
    if not right:
        raise Malformed("a reply does not fit its request")
    return observation


def limits(problem: Problem) -> Limits:
    """The limits of a problem's submissions."""
    plain = Limits()
    seconds = problem.limits.seconds or plain.wall_seconds
    memory = problem.limits.memory_mb * MIB if problem.limits.memory_mb else plain.memory_bytes
    return replace(plain, wall_seconds=seconds, cpu_seconds=int(2 * seconds) + 1, memory_bytes=memory)


def _late(actuals: Sequence[Observation | None], run: Run) -> frozenset[int]:
    """Trials whose results had changed by the end of the run."""
    if run.digests is None:
        return frozenset()
    returned = [i for i, a in enumerate(actuals) if a is not None and a.outcome is Outcome.RETURNED]
    # A look that leaves a trial out has not shown that its results are what they were.
    later = [*run.digests, *[None] * (len(returned) - len(run.digests))]
    return frozenset(i for i, seen in zip(returned, later, strict=False) if seen != _digests(actuals[i]))


def _digests(observation: Observation | None) -> tuple[str, ...]:
    return () if observation is None else tuple(digests(observation))


def _confirm(
    task: Task, submission: Submission, engine: Engine, blank: Report, judged: _Judged
) -> list[Fold]:
    """Drops findings of the hygiene run that do not repeat on two fresh draws."""
    doubtful = [entry for entry in judged.folds if _only_hygiene(entry, judged.trials)]
    if not doubtful:
        return judged.folds
    confirmed = {entry.check: _repeats(task, submission, engine, blank, judged, entry) for entry in doubtful}
    if all(confirmed.values()):
        return judged.folds
    cleared = {check for check, repeats in confirmed.items() if not repeats}
    seen = views(
        task.problem, judged.trials, judged.actuals, task.versions, _late(judged.actuals, judged.run)
    )
    kept = [
        v
        for v in seen
        if v.trial.phase is not Phase.HYGIENE or not _cleared_by(cleared, judged.folds, v.index)
    ]
    return fold(task.problem, kept, len(kept) + len(judged.trials) - len(seen))


def _cleared_by(cleared: set[str], folds: Sequence[Fold], index: int) -> bool:
    return any(f.trial == index for entry in folds if entry.check in cleared for f in entry.findings)


def _only_hygiene(entry: Fold, trials: Sequence[Trial]) -> bool:
    numeric = entry.check in ("values", "gradient") and entry.findings
    codes = {"value", "wrong", "nonfinite"}
    return bool(numeric) and all(
        f.trial is not None and trials[f.trial].phase is Phase.HYGIENE and f.code in codes
        for f in entry.findings
    )


def _repeats(
    task: Task, submission: Submission, engine: Engine, blank: Report, judged: _Judged, entry: Fold
) -> bool:
    """Whether any of the doubtful findings shows again on every fresh draw."""
    planner = Planner(task.problem, blank.seed, blank.device)
    for finding in _spread(entry.findings):
        assert finding.trial is not None
        draws = [redraw(planner, judged.trials[finding.trial], n) for n in range(_CONFIRMING_DRAWS)]
        prepared = [_prepared(task, trial, blank.seed) for trial in draws]
        _, trials, actuals = _run(task, submission, engine, partial(list, prepared))
        seen = views(task.problem, trials, actuals, task.versions)
        again = [f for f in fold(task.problem, seen, len(trials)) if f.status is Status.FAILED]
        if len(failed_trials(again)) == len(trials):
            return True
    return False


def _spread(findings: Sequence[Finding]) -> Sequence[Finding]:
    """A few findings, the first and the last among them."""
    if len(findings) <= _CONFIRMED_TRIALS:
        return findings
    return [findings[0], findings[len(findings) // 2], findings[-1]]


def _cases(problem: Problem, judged: _Judged) -> list[CaseResult]:
    failed = failed_trials(judged.folds)
    results = []
    cases: list[Case | ErrorCase] = [*problem.cases, *problem.errors]
    for case in cases:
        indices = [i for i, trial in enumerate(judged.trials) if trial.case == case.name]
        unseen = any(judged.actuals[i] is None for i in indices)
        sizes = judged.trials[indices[0]].sizes if indices else {}
        results.append(
            CaseResult(case.name, case.visible, not unseen and failed.isdisjoint(indices), dict(sizes))
        )
    return results


def _named(task: Task, judged: _Judged) -> list[NamedMistake]:
    ids = mistakes.explain(task.problem, task.versions, judged.trials, judged.actuals, judged.folds)
    return [
        NamedMistake(m.id, m.title, f"{m.what} {m.why}", m.fix) for m in task.problem.mistakes if m.id in ids
    ]


def _summary(judged: _Judged, submission: Submission) -> RunSummary:
    first = next((a for a in judged.actuals if a is not None and a.outcome is not Outcome.RETURNED), None)
    raised = next(
        (
            a.raised
            for t, a in zip(judged.trials, judged.actuals, strict=True)
            if a is not None and a.raised is not None and t.raises is None and not t.traced
        ),
        None,
    )
    outcome = judged.run.outcome
    if outcome is Outcome.RETURNED and raised is not None:
        outcome = Outcome.RAISED
    trace = explain.traceback_text(raised, submission.text, submission.file) if raised is not None else None
    detail = judged.run.detail or (first.detail if first is not None else "")
    return RunSummary(outcome, judged.run.stdout, trace, detail)


def _errored(problem: Problem, folds: Sequence[Fold]) -> dict[str, Any]:
    broken = next(entry for entry in folds if entry.status is Status.ERRORED)
    error = GraderError(
        f"the check `{broken.check}` could not be judged",
        where=problem.id,
        cause=broken.reason or "",
        next_step=f"mhaquiz lint {problem.id}",
    )
    return {**error.to_json(), "exit_code": error.exit_code}
