"""From folds to a worded report: which finding leads, where it is in the source, what picture goes with it."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from grader import provenance
from grader.checks.allocation import COPIES
from grader.fold import Fold
from grader.guest.harness import source_lines
from grader.host.engine import Run
from grader.inputs import Phase, Trial
from grader.observe import Observation, Operation, RaisedFacts, TensorFacts
from grader.report import (
    CheckResult,
    Finding,
    Layout,
    OperationNote,
    Outcome,
    Picture,
    Place,
    RunSummary,
    Status,
    Verdict,
)
from grader.snippet import snippet
from grader.spec.checks import NoCopyOptions
from grader.spec.model import Problem
from grader.spec.shapes import parse_shape
from grader.versions import Versions
from grader.wording import sentence

NOT_STARTED = "The starter is unchanged: write the body, save, and run the same command again."
_PHASES = {Phase.EXACT: 0, Phase.LOGIC: 0, Phase.HYGIENE: 1, Phase.ERROR: 2}
_MEMORY = ("no_copy", "strides", "contiguous", "single_storage", "allocation")
_SHOWN_KINDS = (*COPIES, "internal_copy")
_MASK_CELLS = 16


@dataclass
class Words:
    """Words the folds of one submission."""

    problem: Problem
    source: str
    file: str
    trials: Sequence[Trial]
    actuals: Sequence[Observation | None]
    versions: Versions

    def check(self, entry: Fold) -> CheckResult:
        """One check's result, led by its most telling finding."""
        if entry.status is not Status.FAILED:
            return CheckResult(entry.check, entry.status, reason=entry.reason, waits_for=entry.waits_for)
        finding = min(entry.findings, key=self._rank)
        words = sentence(finding)
        trial = self.trials[finding.trial] if finding.trial is not None else None
        return CheckResult(
            name=entry.check,
            status=entry.status,
            code=finding.code,
            message=words.message,
            why=words.why,
            place=finding.place or self._place(entry.check),
            expected=words.expected,
            actual=words.actual,
            case=dict(trial.sizes) if trial else None,
            case_name=trial.case if trial else None,
            data=_plain(finding.data),
            picture=self._picture(finding),
            snippet=snippet(trial, self._expected(trial), self.file) if trial else None,
        )

    def operations(self) -> tuple[OperationNote, ...]:
        """The copies of the traced run, in order, each place once."""
        notes: dict[tuple[str, Place | None], OperationNote] = {}
        for operation in self._traced:
            if operation.kind in _SHOWN_KINDS:
                note = OperationNote(
                    operation.op, operation.call, operation.kind, operation.new_bytes, operation.place
                )
                notes.setdefault((operation.op, operation.place), note)
        return tuple(notes.values())

    def notes(self) -> list[str]:
        """Remarks that cost nothing."""
        internal = [o for o in self._traced if o.kind == "internal_copy"]
        if not internal:
            return []
        calls = ", ".join(sorted({f"`{o.call}`" for o in internal}))
        size = sum(o.new_bytes for o in internal)
        return [f"{calls} copied {size} bytes inside, on the traced call: shown for interest, not counted."]

    @cached_property
    def _traced(self) -> tuple[Operation, ...]:
        for actual in self.actuals:
            if actual is not None and actual.operations is not None and actual.outcome is Outcome.RETURNED:
                return actual.operations
        return ()

    def _rank(self, finding: Finding) -> tuple[bool, bool, int, int, bool, int]:
        """Visible, with a place, logic, small, float32 (the traced one): each before what is not."""
        if finding.trial is None:
            return (True, True, 9, 0, True, 0)
        trial = self.trials[finding.trial]
        size = sum(buffer.numel() for buffer in trial.buffers)
        phase, placeless = _PHASES[trial.phase], finding.place is None
        return (not trial.visible, placeless, phase, size, trial.dtype != "float32", finding.trial)

    def _place(self, check: str) -> Place | None:
        """For findings about memory: where the traced run copied first."""
        if check not in _MEMORY:
            return None
        copies = [o.place for o in self._traced if o.kind in COPIES and o.place is not None]
        return copies[0] if copies else None

    def _expected(self, trial: Trial) -> Observation | None:
        if trial.raises or trial.gradient_of:
            return None
        return self.versions.observe("reference", trial)

    def _picture(self, finding: Finding) -> Picture | None:
        if finding.trial is None:
            return None
        trial, actual = self.trials[finding.trial], self.actuals[finding.trial]
        expected = self._expected(trial)
        number = int(finding.data.get("result", 0))
        if actual is None or expected is None or actual.outcome is not Outcome.RETURNED:
            return None
        pairs = list(zip(expected.leaves(), actual.leaves(), strict=False))
        if number >= len(pairs):
            return None
        asked, yours = pairs[number]
        if finding.check in ("no_copy", "strides", "contiguous"):
            return self._layouts(trial, number, asked, yours)
        return self._moves(trial, asked, yours) or _mask(asked, yours) if finding.check == "values" else None

    def _layouts(self, trial: Trial, number: int, asked: TensorFacts, yours: TensorFacts) -> Picture:
        texts = [self.problem.returns] if isinstance(self.problem.returns, str) else self.problem.returns
        axes = parse_shape(texts[number]).labels if number < len(texts) else ()
        one, two = (_layout(facts, axes, trial) for facts in (asked, yours))
        return Picture("layout", one, two, {"of": _viewed(self.problem, number)})

    def _moves(self, trial: Trial, asked: TensorFacts, yours: TensorFacts) -> Picture | None:
        if asked.data is None or yours.data is None:
            return None
        found = provenance.moved(self.problem, trial, asked.data, yours.data)
        inputs = len(provenance.position_inputs(self.problem, trial))
        rows = [
            {
                "at": f"out[{', '.join(map(str, move.index))}]",
                "holds": provenance.words(move.holds, move.expected, inputs=inputs),
                "expected": provenance.words(move.expected, move.holds, inputs=inputs),
            }
            for move in found
        ]
        return Picture("moves", data={"rows": rows}) if rows else None


def _viewed(problem: Problem, number: int) -> str | None:
    use = next((use for use in problem.checks if use.name == "no_copy"), None)
    if use is None:
        return None
    names = NoCopyOptions.model_validate(use.options).of
    return names if isinstance(names, str) else names[number]


def _layout(facts: TensorFacts, axes: tuple[str, ...], trial: Trial) -> Layout:
    itemsize = facts.data.element_size() if facts.data is not None else 4
    names = axes if len(axes) == len(facts.shape) else tuple(f"axis {i}" for i in range(len(facts.shape)))
    shares = trial.named(facts.buffer) if facts.buffer is not None else None
    return Layout(names, facts.shape, facts.stride or (), facts.offset, itemsize, shares)


def _mask(asked: TensorFacts, yours: TensorFacts) -> Picture | None:
    """For results that hide something: which pairs of query and key are open."""
    if asked.data is None or yours.data is None or asked.data.dim() < 2 or asked.shape != yours.shape:
        return None
    right, got = _open(asked.data), _open(yours.data)
    if right is None or got is None:
        return None
    differs = (
        (right != got).flatten(0, -3).any(-1).any(-1) if right.dim() > 2 else torch.ones(1, dtype=torch.bool)
    )
    first = int(differs.int().argmax())
    right, got = (t.reshape(-1, *t.shape[-2:])[first, :_MASK_CELLS, :_MASK_CELLS] for t in (right, got))
    data = {"asked": right.tolist(), "yours": got.tolist(), "rows": "query", "columns": "key"}
    return Picture("mask", data=data)


def _open(data: torch.Tensor) -> torch.Tensor | None:
    if data.dtype == torch.bool:
        return data
    return ~data.isneginf() if data.is_floating_point() and bool(data.isneginf().any()) else None


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Finding data as JSON can hold it."""
    return {key: _finite(value) for key, value in data.items() if key != "code"}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value


def unchanged_starter(problem: Problem, source: str) -> bool:
    """Whether the submission is the starter, but for comments and blank lines."""
    if len(source) > 4 * len(problem.starter) + 1000:
        return False
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(problem.starter))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def load_failure(problem: Problem, file: str, source: str, run: Run) -> dict[str, Any]:
    """The report's fields for a submission that could not be loaded."""
    facts = run.load_failure or {}
    what, cause = _load_words(problem, facts, source)
    frames = facts.get("frames") or []
    line = facts.get("line") or (frames[-1].get("line") if frames else None)
    column = facts.get("column")
    where = file + (f":{line}:{column}" if line and column else f":{line}" if line else "")
    next_step = f"correct the file, then run `mhaquiz attempt {problem.id} {file}`"
    error = {
        "where": where,
        "what": what,
        "cause": cause,
        "next": next_step,
        "fault": "submission",
        "exit_code": 1,
    }
    trace = _load_trace(facts, source, file)
    return {
        "verdict": Verdict.INVALID,
        "error": error,
        "run": RunSummary(Outcome.RAISED, run.stdout, trace, what),
    }


def _load_words(problem: Problem, facts: Mapping[str, Any], source: str) -> tuple[str, str]:
    code = facts.get("code")
    if code == "missing_entry":
        return _missing_entry(problem, facts, source)
    if code == "not_callable":
        what = f"`{facts.get('entry')}` is a {facts.get('type')}, not something that can be called"
        return what, f"the problem asks for `{problem.signature}`"
    if code == "syntax":
        message = str(facts.get("message"))
        if "null byte" in message:
            return "the file holds NUL bytes, so it is no Python source", "it may be a binary or UTF-16 file"
        if "codec can't decode" in message:
            return "the file is not UTF-8 text", "save it as UTF-8, or declare its encoding on the first line"
        return f"the file is not valid Python: {message}", ""
    if code == "raised":
        text = f"{facts.get('type')}: {facts.get('message')}".rstrip(": ")
        return f"importing the file raised {text}", "code outside functions runs when the file is loaded"
    told = " ".join(str(facts[key]) for key in ("type", "message") if facts.get(key))
    return f"the file could not be compiled: {told}" if told else "the file could not be compiled", ""


def _missing_entry(problem: Problem, facts: Mapping[str, Any], source: str) -> tuple[str, str]:
    entry = str(facts.get("entry"))
    if not source.strip():
        return (
            f"the file is empty; it must define `{entry}`",
            "the file was not saved, or another one was meant",
        )
    names = [str(name) for name in facts.get("names", [])]
    close = difflib.get_close_matches(entry, names, 1, 0.5)
    if close:
        return f"found `{close[0]}`, did you mean `{entry}`?", f"the problem asks for `{problem.signature}`"
    others = (
        f"it defines {', '.join(f'`{n}`' for n in names[:5])}"
        if names
        else "it defines nothing that can be called"
    )
    return f"the file does not define `{entry}`", others


def _load_trace(facts: Mapping[str, Any], source: str, file: str) -> str | None:
    if facts.get("code") != "raised":
        return None
    lines = _frame_lines([(f.get("line"), f.get("name")) for f in facts.get("frames", [])], source, file)
    return "\n".join([*lines, f"{facts.get('type')}: {facts.get('message')}"])


def traceback_text(raised: RaisedFacts, source: str, file: str) -> str:
    """The submission's own frames and the exception, as Python would print them."""
    lines = _frame_lines([(place.line, name) for place, name in raised.frames], source, file)
    return "\n".join([*lines, f"{raised.type}: {raised.message}" if raised.message else raised.type])


def _frame_lines(frames: Sequence[tuple[Any, Any]], source: str, file: str) -> list[str]:
    text = source_lines(source)
    lines = []
    for line, name in frames:
        lines.append(f"  {file}:{line} in {name}")
        if isinstance(line, int) and 0 < line <= len(text):
            lines.append(f"    {text[line - 1].strip()}")
    return lines
