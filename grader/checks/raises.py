"""raises: bad input gets the promised exception (or a subclass). It costs only itself."""

from __future__ import annotations

from grader.checks.mutation import changed
from grader.checks.registry import View, check
from grader.checks.returns import describe
from grader.observe import Facts, ForeignFacts, ScalarFacts
from grader.report import Finding, Outcome


def _is_answer(facts: Facts) -> bool:
    """Whether a result could pass for one: tensors and numbers can, None and exception objects cannot."""
    if isinstance(facts, ScalarFacts):
        return facts.value is not None and not isinstance(facts.value, str)
    return not isinstance(facts, ForeignFacts)


@check("raises", lambda view: view.trial.raises is not None)
def raises(view: View) -> Finding | None:
    """The call raised what the problem promises, and left alone what it must."""
    promised = view.trial.raises
    assert promised is not None
    actual = view.actual
    if actual.outcome is Outcome.RETURNED and actual.results and not any(map(_is_answer, actual.results)):
        came = describe(actual.results[0])
        return view.finding(
            "raises", "returned_instead", expected=promised, actual=came, case=view.trial.case
        )
    if actual.outcome is Outcome.RETURNED:
        return view.finding("raises", "not_raised", expected=promised, case=view.trial.case)
    if actual.raised is None:
        return view.finding("raises", str(actual.outcome), expected=promised, case=view.trial.case)
    if promised not in actual.raised.bases:
        raised = actual.raised
        return view.finding(
            "raises", "other", raised.place, expected=promised, actual=raised.type, text=raised.message
        )
    for name in view.trial.unchanged:
        if changed(view, view.trial.argument(name).buffer):
            return view.finding("raises", "changed_first", of=name, expected=promised)
    return None
