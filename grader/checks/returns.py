"""returns: every call comes back, with plain tensors (or numbers) in the structure that was asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.checks.registry import View, check
from grader.observe import Facts, ForeignFacts, ItemsFacts, MembersFacts, ScalarFacts, TensorFacts
from grader.report import Finding, Outcome


def _ordinary(view: View) -> bool:
    # A causal pair's own calls count: what they return is compared too.
    return view.plain or view.causal


@check("returns", _ordinary)
def returns(view: View) -> Finding | None:
    """The call returned, and what it returned has the reference's structure."""
    actual = view.actual
    if actual.outcome is not Outcome.RETURNED:
        return _not_returned(view)
    assert view.expected is not None
    for number, (expected, got) in enumerate(zip(view.expected.results, actual.results, strict=True)):
        problem = mismatch(expected, got)
        if problem is not None:
            return view.finding("returns", problem.pop("code"), result=number, **problem)
    return None


def _not_returned(view: View) -> Finding:
    actual = view.actual
    if actual.raised is None:
        return view.finding("returns", str(actual.outcome), detail=actual.detail)
    raised = actual.raised
    return view.finding("returns", "raised", raised.place, type=raised.type, text=raised.message)


def mismatch(expected: Facts, got: Facts) -> dict[str, Any] | None:
    """How a result's structure differs from the expected, or None."""
    if isinstance(expected, TensorFacts):
        return _tensor_mismatch(got)
    if isinstance(expected, ScalarFacts):
        right = isinstance(got, ScalarFacts) and got.type == expected.type
        return None if right else {"code": "type", "expected": expected.type, "actual": describe(got)}
    if isinstance(expected, ItemsFacts):
        return _items_mismatch(expected, got)
    if isinstance(expected, MembersFacts):
        if not isinstance(got, MembersFacts) or set(got.members) != set(expected.members):
            return {"code": "type", "expected": describe(expected), "actual": describe(got)}
        return _first((expected.members[key], got.members[key]) for key in expected.members)
    return None


def _first(pairs: Iterable[tuple[Facts, Facts]]) -> dict[str, Any] | None:
    return next((found for expected, got in pairs if (found := mismatch(expected, got)) is not None), None)


def _items_mismatch(expected: ItemsFacts, got: Facts) -> dict[str, Any] | None:
    if isinstance(got, TensorFacts):
        return {"code": "stacked", "expected": describe(expected), "actual": describe(got)}
    if not isinstance(got, ItemsFacts) or len(got.items) != len(expected.items):
        return {"code": "type", "expected": describe(expected), "actual": describe(got)}
    return _first(zip(expected.items, got.items, strict=True))


def _tensor_mismatch(got: Facts) -> dict[str, Any] | None:
    if not isinstance(got, TensorFacts):
        return {"code": "type", "expected": "a tensor", "actual": describe(got)}
    if got.flagged:
        return {"code": "flagged", "expected": "a plain tensor", "actual": f"a lazily {got.flagged} tensor"}
    if got.data is None and "larger" not in got.note:
        return {
            "code": "unreadable",
            "expected": "a dense tensor",
            "actual": f"a tensor that cannot be read ({got.note})",
        }
    return None


def describe(facts: Facts) -> str:
    """A result's structure in words."""
    if isinstance(facts, TensorFacts):
        return f"a tensor of shape {tuple(facts.shape)}"
    if isinstance(facts, ScalarFacts):
        return "None" if facts.value is None else f"{facts.type} {facts.value}"
    if isinstance(facts, ItemsFacts):
        return f"a {facts.type} of {len(facts.items)}"
    if isinstance(facts, MembersFacts):
        return "a dict with " + (", ".join(facts.members) or "nothing")
    assert isinstance(facts, ForeignFacts)
    return facts.type
