"""values: each result holds the right numbers, by the rule of the trial's phase (see grader/numerics.py)."""

from __future__ import annotations

from typing import Any

import torch

from grader.checks.registry import View, check
from grader.inputs import Phase
from grader.numerics import Gap, exact_gap, hygiene_gap, logic_gap
from grader.observe import ItemsFacts, MembersFacts, ScalarFacts, TensorFacts
from grader.report import Finding

_WINDOW = 4


@check("values")
def values(view: View) -> Finding | None:
    """Numbers are right, result by result."""
    scalar = _scalar_gap(view)
    if scalar is not None:
        return scalar
    for number, expected, actual in view.leaves():
        gap = tensor_gap(view, number, expected, actual)
        if gap is not None:
            assert expected.data is not None
            assert actual.data is not None
            return view.finding("values", gap.kind, **gap_data(view, number, gap, expected.data, actual.data))
    return None


def tensor_gap(view: View, number: int, expected: TensorFacts, actual: TensorFacts) -> Gap | None:
    """The first rule broken by one result tensor, or None."""
    if expected.data is None or actual.data is None:
        return None
    whole = not expected.data.is_floating_point()
    if whole or view.trial.phase is Phase.EXACT:
        return exact_gap(actual.data, expected.data)
    if view.trial.phase is Phase.LOGIC:
        return logic_gap(actual.data, expected.data)
    assert view.oracle is not None
    oracle = view.oracle.leaves()[number].data
    assert oracle is not None
    return hygiene_gap(actual.data, oracle, expected.data, view.trial.dtype)


def gap_data(
    view: View, number: int, gap: Gap, expected: torch.Tensor, actual: torch.Tensor
) -> dict[str, Any]:
    """A gap as plain data for the report, with a small window around the worst element."""
    return {
        "result": number,
        "index": list(gap.index),
        "expected": gap.expected,
        "actual": gap.actual,
        "wrong": gap.wrong,
        "total": gap.total,
        "times": gap.times,
        "honest": gap.honest,
        "phase": str(view.trial.phase),
        "dtype": view.trial.dtype,
        "window": window(expected.double(), actual.double(), gap.index),
    }


def window(expected: torch.Tensor, actual: torch.Tensor, index: tuple[int, ...]) -> dict[str, object] | None:
    """A few rows and columns of both tensors around an element, in the last two axes."""
    if not index:
        return None
    if len(index) == 1:
        expected, actual, index = expected.unsqueeze(0), actual.unsqueeze(0), (0, *index)
    lead = index[:-2]
    starts = [_start(i, n) for i, n in zip(index[-2:], expected.shape[-2:], strict=True)]
    spans = tuple(slice(start, start + _WINDOW) for start in starts)
    return {
        "expected": expected[lead][spans].tolist(),
        "got": actual[lead][spans].tolist(),
        "origin": [*lead, *starts],
        "marked": [index[-2] - starts[0], index[-1] - starts[1]],
    }


def _start(index: int, size: int) -> int:
    return max(0, min(index - 1, size - _WINDOW))


def _scalar_gap(view: View) -> Finding | None:
    assert view.expected is not None
    for number, (expected, actual) in enumerate(zip(view.expected.results, view.actual.results, strict=True)):
        for right, got in zip(_scalars(expected), _scalars(actual), strict=True):
            if right.value != got.value:
                return view.finding(
                    "values",
                    "number",
                    result=number,
                    what=_counted(view, number),
                    expected=str(right.value),
                    actual=str(got.value),
                )
    return None


def _counted(view: View, number: int) -> str | None:
    """What a number is, where a step of the grader's own made it."""
    observed = [step for step in view.trial.steps if step.get("observe")]
    return "the number of parameters" if observed[number]["do"] == "parameters" else None


def _scalars(facts: object) -> list[ScalarFacts]:
    if isinstance(facts, ItemsFacts):
        return [scalar for item in facts.items for scalar in _scalars(item)]
    if isinstance(facts, MembersFacts):
        return [scalar for member in facts.members.values() for scalar in _scalars(member)]
    return [facts] if isinstance(facts, ScalarFacts) else []
