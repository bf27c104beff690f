"""How an input lies in memory: a view of a larger or reordered buffer. Strides and offsets in elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from grader.spec.model import LayoutName, MemoryLayout
from grader.spec.shapes import evaluate


@dataclass(frozen=True)
class Strided:
    """A view of a buffer of `numel` elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    numel: int

    @property
    def dense(self) -> bool:
        """Whether the view covers its memory without holes, in whatever order of axes."""
        reach = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        return math.prod(self.shape) == 0 or reach == math.prod(self.shape)


def lay_out(shape: tuple[int, ...], layout: LayoutName | MemoryLayout, sizes: Mapping[str, int]) -> Strided:
    """Where each element of an input of this shape lies."""
    memory = layout if isinstance(layout, MemoryLayout) else named_layout(layout, shape)
    rank = len(shape)
    pads = {axis % rank: pad for axis, pad in memory.pad.items()} if rank else {}
    steps = {axis % rank: step for axis, step in memory.step.items()} if rank else {}
    before = [int(evaluate(pads[axis][0], sizes)) if axis in pads else 0 for axis in range(rank)]
    after = [int(evaluate(pads[axis][1], sizes)) if axis in pads else 0 for axis in range(rank)]
    step = [steps.get(axis, 1) for axis in range(rank)]
    full = [b + n * s + a for b, n, s, a in zip(before, shape, step, after, strict=True)]
    stride, numel = [0] * rank, 1
    for axis in reversed(memory.order or range(rank)):
        stride[axis] = numel
        numel *= full[axis]
    offset = sum(b * s for b, s in zip(before, stride, strict=True))
    strides = tuple(s * t for s, t in zip(stride, step, strict=True))
    return Strided(shape, strides, offset, numel)


def named_layout(name: LayoutName, shape: tuple[int, ...]) -> MemoryLayout:
    """The layouts that have a name.

    fused: the middle third of a three times wider last axis. transposed: axes -2 and -3 swapped in memory
    ((B, S, H, d) memory seen as (B, H, S, d)), or the only two axes. sequence-first: the first two axes swapped.
    sliced: cut out of a longer axis -2. strided: every other element of the last axis.
    """
    rank = len(shape)
    axes = list(range(rank))
    if name == "fused" and rank:
        return MemoryLayout(pad={-1: (shape[-1], shape[-1])})
    if name == "transposed" and rank == 3:
        return MemoryLayout(order=[0, 2, 1])
    if name == "transposed" and rank >= 2:
        low = max(rank - 3, 0)
        axes[low], axes[low + 1] = axes[low + 1], axes[low]
        return MemoryLayout(order=axes)
    if name == "sequence-first" and rank >= 2:
        axes[0], axes[1] = axes[1], axes[0]
        return MemoryLayout(order=axes)
    if name == "sliced" and rank:
        return MemoryLayout(pad={-2 if rank > 1 else -1: (1, 2)})
    if name == "strided" and rank:
        return MemoryLayout(step={-1: 2})
    return MemoryLayout()
