"""gradient: backward gives the reference's gradients. A missing gradient counts as zero."""

from __future__ import annotations

import torch

from grader.checks.registry import View, check
from grader.inputs import Phase
from grader.numerics import Gap, hygiene_gap, logic_gap
from grader.observe import GradientFacts
from grader.report import Finding, Outcome


@check("gradient", lambda view: bool(view.trial.gradient_of or view.trial.parameters))
def gradient(view: View) -> Finding | None:
    """Gradients of the inputs are equal by the phase's rule; each parameter's is there and finite."""
    if view.actual.outcome is not Outcome.RETURNED:
        raised = view.actual.raised
        kind = raised.type if raised else str(view.actual.outcome)
        place, text = (raised.place, raised.message) if raised else (None, view.actual.detail)
        return view.finding("gradient", "raised", place, type=kind, text=text)
    facts, expected = view.actual.gradient, view.expected.gradient if view.expected else None
    if facts is None or expected is None:
        return None
    if facts.raised is not None:
        raised = facts.raised
        return view.finding(
            "gradient", "backward_raised", raised.place, type=raised.type, text=raised.message
        )
    return _inputs(view, facts, expected) or _parameters(view, facts)


def _inputs(view: View, facts: GradientFacts, expected: GradientFacts) -> Finding | None:
    names = [a.name for name in view.trial.gradient_of for a in view.trial.arguments if a.name == name]
    for number, (name, got, right) in enumerate(zip(names, facts.inputs, expected.inputs, strict=True)):
        gap = _gap(view, number, got, right)
        if gap is not None:
            code = "missing" if got is None else "wrong"
            return view.finding(
                "gradient",
                code,
                of=name,
                index=list(gap.index),
                expected=gap.expected,
                actual=gap.actual,
                times=gap.times,
                dtype=view.trial.dtype,
                phase=str(view.trial.phase),
            )
    return None


def _gap(view: View, number: int, got: torch.Tensor | None, right: torch.Tensor | None) -> Gap | None:
    if got is None and right is None:
        return None
    like = right if right is not None else got
    assert like is not None
    got = torch.zeros_like(like) if got is None else got
    right = torch.zeros_like(like) if right is None else right
    if got.shape != right.shape:
        return Gap((), 0.0, 0.0, got.numel(), got.numel(), float("inf"))
    if view.trial.phase is not Phase.HYGIENE:
        return logic_gap(got, right)
    oracle = view.oracle.gradient if view.oracle else None
    exact = oracle.inputs[number] if oracle else None
    exact = torch.zeros_like(right) if exact is None else exact
    return hygiene_gap(got, exact, right, view.trial.dtype)


def _parameters(view: View, facts: GradientFacts) -> Finding | None:
    if not view.trial.parameters:
        return None
    missing = sum(finite is None for finite in facts.parameters)
    if missing or not facts.parameters:
        return view.finding("gradient", "parameter_missing", count=missing, total=len(facts.parameters))
    broken = sum(finite is False for finite in facts.parameters)
    if broken:
        return view.finding("gradient", "parameter_not_finite", count=broken, total=len(facts.parameters))
    return None
