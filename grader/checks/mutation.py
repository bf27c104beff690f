"""mutation: inputs are as they were after the call, by two witnesses.

Bytes see an edit through `.data` or numpy; the version counter sees an edit that was undone.
"""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.guest.harness import to_bytes
from grader.report import Finding
from grader.spec.checks import MutationOptions


@check("mutation")
def mutation(view: View) -> Finding | None:
    """No input changed, but for those that the problem allows."""
    allowed = MutationOptions.model_validate(view.options).allow
    for argument in view.trial.arguments:
        if argument.name in allowed or argument.name in scrubbed(view):
            continue
        if changed(view, argument.buffer):
            return view.finding("mutation", "changed", of=argument.name)
        if argument.name in view.actual.relabelled:
            return view.finding("mutation", "relabelled", of=argument.name)
        before, after = view.actual.versions[argument.buffer]
        if before != after:
            return view.finding("mutation", "changed_back", of=argument.name)
    return None


def scrubbed(view: View) -> set[str]:
    """Inputs that the harness itself overwrites in a step."""
    return {name for step in view.trial.steps if step["do"] == "scrub" for name in step["args"]}


def changed(view: View, buffer: int) -> bool:
    """Whether an input's bytes differ after the call."""
    if buffer >= len(view.actual.inputs_after):
        return False
    after = view.actual.inputs_after[buffer]
    return bytes(to_bytes(view.trial.buffers[buffer])) != bytes(to_bytes(after))
