"""no_copy: each result is a view of the input it should be a view of.

A claim is recomputed: the runner names (buffer, offset, shape, stride) and the judge applies it to its own
copy of that buffer. A liar would have to name the right view, which is the answer.
"""

from __future__ import annotations

import torch

from grader.checks.registry import View, check
from grader.observe import TensorFacts
from grader.report import Finding
from grader.spec.checks import NoCopyOptions


@check("no_copy")
def no_copy(view: View) -> Finding | None:
    """Results lie in the memory of the named inputs."""
    names = NoCopyOptions.model_validate(view.options).of
    for number, _, actual in view.leaves():
        name = names if isinstance(names, str) else names[number]
        if actual.data is None or actual.data.numel() == 0:
            continue
        if actual.buffer != view.trial.argument(name).buffer:
            size = actual.data.numel() * actual.data.element_size()
            return view.finding("no_copy", "copied", result=number, of=name, new_bytes=size)
        if not _claim_holds(view, actual):
            return view.finding("no_copy", "false_claim", result=number, of=name)
    return None


def _as_it_should_be(view: View, index: int) -> torch.Tensor:
    """The judge's own buffer; where the problem lets the call write, what the reference makes of it."""
    buffer = view.trial.buffers[index]
    if view.expected is None or index >= len(view.expected.inputs_after):
        return buffer
    return view.expected.inputs_after[index].view(buffer.dtype) if buffer.numel() else buffer


def _claim_holds(view: View, actual: TensorFacts) -> bool:
    """Whether the named view of the judge's own copy holds what the runner sent."""
    assert actual.buffer is not None
    assert actual.data is not None
    buffer = _as_it_should_be(view, actual.buffer)
    stride = actual.stride or ()
    last = actual.offset + sum((n - 1) * s for n, s in zip(actual.shape, stride, strict=True))
    if (
        buffer.dtype != actual.data.dtype
        or actual.offset < 0
        or min(stride, default=0) < 0
        or last >= buffer.numel()
    ):
        return False
    return torch.equal(buffer.as_strided(actual.shape, stride, actual.offset), actual.data)
