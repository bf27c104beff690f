"""dtype: each result has the dtype of the input, whatever was used inside."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.report import Finding


@check("dtype")
def dtype(view: View) -> Finding | None:
    """Dtypes are equal, result by result; a problem may accept wider ones."""
    accepted = view.options.get("accept", [])
    for number, expected, actual in view.leaves():
        if expected.dtype != actual.dtype and actual.dtype not in accepted:
            return view.finding("dtype", "dtype", result=number, expected=expected.dtype, actual=actual.dtype)
    return None
