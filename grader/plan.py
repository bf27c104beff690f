"""Which trials one grade runs, in which order. The order is: values, repeats, causality, traced, gradients, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.inputs import FLOATS, Phase, Planner, Trial, Twin, generator_for
from grader.observe import Observation
from grader.spec.checks import CausalityOptions, GradientOptions
from grader.spec.model import Case, DictInput, Input, ListInput, ModuleInput, Problem, TensorInput

# These look at trials of their own; every other check looks at the plain ones.
_OWN_TRIALS = frozenset(["allocation", "required", "gradient", "causality", "raises"])
_LOWER = ("float32", "bfloat16", "float16")
_GRADED_IN_LOWER = 1


def options_of(problem: Problem, check: str) -> dict[str, Any] | None:
    """The options a problem gives a check, or None when it does not use it."""
    return next((use.options for use in problem.checks if use.name == check), None)


def plan(planner: Planner) -> list[Trial]:
    """Every trial of one grade."""
    problem = planner.problem
    values = [trial for case in problem.cases for trial in _plain(planner, case)]
    trials = [*values, *_repeats(planner, values)]
    trials += _causality(planner, len(trials))
    trials += [replace(trial, traced=True) for trial in _traced(planner)]
    trials += _gradients(planner)
    trials += [planner.trial(case, Phase.ERROR, "float32", "bad") for case in problem.errors]
    return [replace(trial, profiled=True) if _profiled(problem, trial) else trial for trial in trials]


def redraw(planner: Planner, trial: Trial, draw: int) -> Trial:
    """The same kind of trial on fresh numbers."""
    case = next(case for case in planner.problem.cases if case.name == trial.case)
    fresh = planner.trial(case, trial.phase, trial.dtype, f"draw{draw}", trial.gradient_of)
    return replace(fresh, parameters=trial.parameters)


def lower_precision(problem: Problem) -> list[str]:
    """The precisions of the hygiene run."""
    return [name for name in problem.dtypes or FLOATS if name in _LOWER]


def has_floats(problem: Problem) -> bool:
    """Whether any input is of the run's precision."""
    return any(_is_float(spec) for spec in problem.inputs.values())


def float_inputs(problem: Problem) -> list[str]:
    """The inputs that can have a gradient."""
    return [
        name for name, spec in problem.inputs.items() if _is_float(spec) and not isinstance(spec, ModuleInput)
    ]


def _is_float(spec: Input) -> bool:
    if isinstance(spec, TensorInput):
        return spec.dtype == "float"
    if isinstance(spec, ListInput):
        return any(_is_float(item) for item in spec.items)
    if isinstance(spec, DictInput):
        return any(_is_float(item) for item in spec.members.values())
    return isinstance(spec, ModuleInput)


def _runs(problem: Problem, case: Case) -> list[tuple[Phase, str]]:
    dtypes = [name for name in FLOATS if name in (case.dtypes or problem.dtypes or FLOATS)]
    if not has_floats(problem):
        return [(Phase.EXACT, "float32")]
    if (case.numbers or problem.numbers) == "exact":
        return [(Phase.EXACT, name) for name in dtypes]
    return [(Phase.LOGIC if name == "float64" else Phase.HYGIENE, name) for name in dtypes]


def _plain(planner: Planner, case: Case) -> list[Trial]:
    runs = _runs(planner.problem, case)
    if case.only is not None and set(case.only) <= _OWN_TRIALS:
        # The call must still return on such a case; no other plain check looks at it.
        runs = runs[:1]
    return [planner.trial(case, phase, dtype, "plain") for phase, dtype in runs]


def _repeats(planner: Planner, values: Sequence[Trial]) -> list[Trial]:
    """The first trial again: with the same numbers (a twin), and with fresh ones of the same shape."""
    index, first = next(
        ((i, t) for i, t in enumerate(values) if t.looks_at("determinism") and t.buffers), (0, values[0])
    )
    if not first.buffers:
        return [replace(first, twin=Twin("same", index), visible=False)]
    case = next(case for case in planner.problem.cases if case.name == first.case)
    fresh = planner.trial(case, first.phase, first.dtype, "fresh")
    return [replace(first, twin=Twin("same", index)), fresh]


def _causality(planner: Planner, start: int) -> list[Trial]:
    raw = options_of(planner.problem, "causality")
    if raw is None:
        return []
    options = CausalityOptions.model_validate(raw)
    trials: list[Trial] = []
    for case in planner.problem.cases:
        phase = Phase.LOGIC if planner.problem.numbers == "real" else Phase.EXACT
        base = planner.trial(case, phase, "float64", "causal")
        length = min((base.argument(n).view.shape[axis] for n, axis in options.inputs.items()), default=0)
        if base.looks_at("causality") and length > 1:
            later = planner.trial(case, phase, "float64", "later")
            trials += _cut_pair(base, later, options, length, start + len(trials))
    return trials


def _cut_pair(base: Trial, later: Trial, options: CausalityOptions, length: int, index: int) -> list[Trial]:
    """The base trial and one that differs from it in the named inputs from a middle position on."""
    cut = length // 2 if length > 2 else 1
    buffers = [buffer.clone() for buffer in base.buffers]
    for name, axis in options.inputs.items():
        argument = base.argument(name)
        shape = argument.view.shape
        span = (shape[axis] - length + cut, length - cut)
        argument.of(buffers).narrow(axis, *span).copy_(
            later.argument(name).of(later.buffers).narrow(axis, *span)
        )
    only = frozenset(["causality"])
    changed = replace(base, buffers=tuple(buffers), twin=Twin("past", index, cut), only=only)
    return [replace(base, only=only), changed]


def _traced(planner: Planner) -> list[Trial]:
    """One traced trial a case where a check needs it, else one in all: it names operations for the reader."""
    problem = planner.problem
    needed = [
        name for name in ("allocation", "required", "forbidden") if options_of(problem, name) is not None
    ]
    trials = [planner.trial(case, *_traced_run(problem, case), "traced") for case in problem.cases]
    wanted = [trial for trial in trials if any(trial.looks_at(name) for name in needed)]
    return wanted if needed and wanted else trials[:1]


def _traced_run(problem: Problem, case: Case) -> tuple[Phase, str]:
    """In float32 where the case has it, since casts cost nothing in the precision that they cast to."""
    runs = _runs(problem, case)
    return next((run for run in runs if run[1] == "float32"), runs[0])


def _gradients(planner: Planner) -> list[Trial]:
    raw = options_of(planner.problem, "gradient")
    if raw is None:
        return []
    options = GradientOptions.model_validate(raw)
    names = options.of if options.of is not None else float_inputs(planner.problem)
    cases = [c for c in planner.problem.cases if c.gradients and (c.only is None or "gradient" in c.only)]
    cases = [c for c in cases if "gradient" not in c.skip]
    trials = [planner.trial(case, Phase.LOGIC, "float64", "gradient", names) for case in cases]
    for case in cases[:_GRADED_IN_LOWER]:
        trials += [
            planner.trial(case, Phase.HYGIENE, dtype, "gradient", names)
            for dtype in lower_precision(planner.problem)
        ]
    return [replace(trial, parameters=True) for trial in trials] if options.parameters else trials


def _profiled(problem: Problem, trial: Trial) -> bool:
    """Where the library's own list of operators is wanted, beside the trace or where there is none."""
    if trial.traced or trial.raises is not None:
        return False
    if options_of(problem, "forbidden") is not None:
        return True
    return options_of(problem, "allocation") is not None and not (trial.gradient_of or trial.parameters)


def with_cotangents(trial: Trial, expected: Observation, seed: str) -> Trial:
    """The trial with a random cotangent for each floating result; zero where the expected result is not finite."""
    generator = generator_for(seed, trial.key + "/cotangent")
    made: list[torch.Tensor | None] = []
    for leaf in expected.leaves():
        if leaf.data is None or not leaf.data.is_floating_point():
            made.append(None)
            continue
        values = torch.randn(leaf.shape, generator=generator, dtype=torch.float64)
        made.append(values.masked_fill(~torch.isfinite(leaf.data.double()), 0.0).to(leaf.data.dtype))
    return replace(trial, cotangents=tuple(made))
