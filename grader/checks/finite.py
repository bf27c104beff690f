"""finite: no NaN and no infinity where the reference has none."""

from __future__ import annotations

import torch

from grader.checks.registry import View, check
from grader.report import Finding


@check("finite")
def finite(view: View) -> Finding | None:
    """Every element that is finite in the reference is finite here."""
    for number, expected, actual in view.leaves():
        if expected.data is None or actual.data is None or not actual.data.is_floating_point():
            continue
        bad = ~torch.isfinite(actual.data) & torch.isfinite(expected.data.double())
        if bool(bad.any()):
            index = [int(i) for i in torch.nonzero(bad)[0]]
            value = "NaN" if bool(actual.data[tuple(index)].isnan()) else "infinity"
            return view.finding(
                "finite",
                "nan" if value == "NaN" else "infinite",
                result=number,
                index=index,
                count=int(bad.sum()),
                total=bad.numel(),
                dtype=view.trial.dtype,
                expected=float(expected.data[tuple(index)]),
                actual=value,
            )
    return None
