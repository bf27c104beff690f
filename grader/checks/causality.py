"""causality: changing later positions of the inputs does not change earlier results."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.numerics import logic_gap
from grader.report import Finding, Outcome
from grader.spec.checks import CausalityOptions

_SAME = 1e-6


def _changed_pair(view: View) -> bool:
    ran = view.actual.outcome is Outcome.RETURNED
    return (
        ran and view.trial.twin is not None and view.trial.twin.relation == "past" and view.twin is not None
    )


@check("causality", _changed_pair)
def causality(view: View) -> Finding | None:
    """Results before the cut are the same as the twin's."""
    assert view.twin is not None
    assert view.trial.twin is not None
    axis = CausalityOptions.model_validate(view.options).axis
    cut = view.trial.twin.cut
    for number, (changed, base) in enumerate(zip(view.actual.leaves(), view.twin.leaves(), strict=True)):
        if changed.data is None or base.data is None or changed.shape != base.shape:
            continue
        past = base.data.narrow(axis, 0, min(cut, base.data.shape[axis]))
        gap = logic_gap(changed.data.narrow(axis, 0, past.shape[axis]), past, _SAME)
        if gap is not None:
            return view.finding(
                "causality",
                "future_seen",
                result=number,
                index=list(gap.index),
                position=gap.index[axis],
                changed_from=cut,
                before=gap.expected,
                after=gap.actual,
            )
    return None
