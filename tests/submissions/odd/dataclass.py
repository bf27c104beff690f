from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Order(Enum):
    HEADS_FIRST = 1


class Sizes(NamedTuple):
    batch: int
    seq: int
    d_model: int


@dataclass(frozen=True)
class Split:
    heads: int
    order: Order = Order.HEADS_FIRST
    notes: list[str] = field(default_factory=list)

    def __call__(self, x):
        sizes = Sizes(*x.shape)
        if sizes.d_model % self.heads:
            raise ValueError("not divisible")
        return x.unflatten(-1, (self.heads, sizes.d_model // self.heads)).transpose(1, 2)


def split_heads(x, num_heads):
    return Split(num_heads)(x)
