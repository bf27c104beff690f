"""contiguous: a result that had to be copied is contiguous. A free view of the input is always accepted."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.checks.strides import same_strides
from grader.report import Finding
from grader.spec.checks import ContiguousOptions


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of a shape."""
    stride, strides = 1, []
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))


@check("contiguous")
def contiguous(view: View) -> Finding | None:
    """Results are contiguous, where the named input's memory has no holes and the result is no view of it."""
    source = view.trial.argument(ContiguousOptions.model_validate(view.options).of)
    if not source.view.dense:
        return None
    for number, _, actual in view.leaves():
        row_major = contiguous_strides(actual.shape)
        if actual.buffer != source.buffer and not same_strides(actual.shape, row_major, actual.stride):
            return view.finding(
                "contiguous",
                "not_contiguous",
                result=number,
                axes=list(view.axes[number]) if number < len(view.axes) else [],
                shape=list(actual.shape),
                expected=list(row_major),
                actual=list(actual.stride or ()),
            )
    return None
