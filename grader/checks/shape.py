"""shape: each result has the asked shape."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.report import Finding


@check("shape")
def shape(view: View) -> Finding | None:
    """Shapes are equal, result by result."""
    for number, expected, actual in view.leaves():
        if expected.shape != actual.shape:
            return view.finding(
                "shape",
                "shape",
                result=number,
                axes=list(view.axes[number]) if number < len(view.axes) else [],
                expected=list(expected.shape),
                actual=list(actual.shape),
            )
    return None
