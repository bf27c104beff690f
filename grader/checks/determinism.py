"""determinism: the same inputs give the same results, and a result stays what it was when it was returned."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.numerics import exact_gap, logic_gap
from grader.report import Finding

_SAME = 1e-6


@check("determinism")
def determinism(view: View) -> Finding | None:
    """Twin trials agree; nothing goes on after the call."""
    if view.late:
        return view.finding("determinism", "changed_later")
    if view.actual.threads > 0:
        return view.finding("determinism", "threads", actual=view.actual.threads)
    if view.trial.twin is None or view.twin is None or view.trial.twin.relation != "same":
        return None
    mine, other = view.actual.leaves(), view.twin.leaves()
    if [leaf.shape for leaf in mine] != [leaf.shape for leaf in other]:
        return view.finding("determinism", "differs", index=[])
    for number, (one, two) in enumerate(zip(mine, other, strict=True)):
        if one.data is None or two.data is None:
            continue
        gap = (
            logic_gap(one.data, two.data, _SAME)
            if one.data.is_floating_point()
            else exact_gap(one.data, two.data)
        )
        if gap is not None:
            return view.finding(
                "determinism",
                "differs",
                result=number,
                index=list(gap.index),
                first=gap.expected,
                second=gap.actual,
            )
    return None
