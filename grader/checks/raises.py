"""raises: bad input gets the promised exception (or a subclass). It costs only itself."""

from __future__ import annotations

from grader.checks.mutation import changed
from grader.checks.registry import View, check
from grader.report import Finding, Outcome


@check("raises", lambda view: view.trial.raises is not None)
def raises(view: View) -> Finding | None:
    """The call raised what the problem promises, and left alone what it must."""
    promised = view.trial.raises
    assert promised is not None
    actual = view.actual
    if actual.outcome is Outcome.RETURNED:
        return view.finding("raises", "not_raised", expected=promised, case=view.trial.case)
    if actual.raised is None:
        return view.finding("raises", str(actual.outcome), expected=promised, case=view.trial.case)
    if promised not in (actual.raised.type, *actual.raised.bases):
        raised = actual.raised
        return view.finding(
            "raises", "other", raised.place, expected=promised, actual=raised.type, text=raised.message
        )
    for name in view.trial.unchanged:
        if changed(view, view.trial.argument(name).buffer):
            return view.finding("raises", "changed_first", of=name, expected=promised)
    return None
