"""device: each result is on the device of the inputs."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.report import Finding


@check("device")
def device(view: View) -> Finding | None:
    """The device is the trial's, result by result."""
    for number, _, actual in view.leaves():
        if actual.device != view.trial.device:
            return view.finding(
                "device", "device", result=number, expected=view.trial.device, actual=actual.device
            )
    return None
