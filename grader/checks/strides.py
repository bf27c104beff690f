"""strides: each result has the strides of the reference, which follow from the input's own.

Strides of axes of size 1 (and of empty tensors) mean nothing and are never compared.
"""

from __future__ import annotations

import math

from grader.checks.registry import View, check
from grader.report import Finding


def same_strides(shape: tuple[int, ...], one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> bool:
    """Whether two strides address the same elements for this shape."""
    if one is None or other is None:
        return one == other
    if math.prod(shape) == 0:
        return True
    return all(n == 1 or a == b for n, a, b in zip(shape, one, other, strict=True))


@check("strides")
def strides(view: View) -> Finding | None:
    """Strides are equal wherever they matter."""
    for number, expected, actual in view.leaves():
        if not same_strides(expected.shape, expected.stride, actual.stride):
            return view.finding(
                "strides",
                "strides",
                result=number,
                axes=list(view.axes[number]) if number < len(view.axes) else [],
                shape=list(expected.shape),
                expected=list(expected.stride or ()),
                actual=list(actual.stride or ()),
            )
    return None
