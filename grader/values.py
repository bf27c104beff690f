"""What inputs hold: one function per value kind, in double precision, rounded to the run's precision later.

Every kind is deterministic in its generator. Options come from the problem file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from grader.spec.shapes import evaluate


@dataclass(frozen=True)
class Wish:
    """What is asked of a value kind: the shape, the dtype's name, the options and the case's sizes."""

    shape: tuple[int, ...]
    dtype: str
    options: Mapping[str, Any]
    sizes: Mapping[str, int]
    generator: torch.Generator

    def number(self, name: str, default: float) -> float:
        """An option that is a number or an expression over the sizes."""
        return float(evaluate(self.options.get(name, default), self.sizes))


Fill = Callable[[Wish], torch.Tensor]
FILLS: dict[str, Fill] = {}

# Whole numbers up to here are exact in the dtype.
EXACT_UP_TO = {"bfloat16": 256, "float16": 2048, "float32": 2**24, "float64": 2**53}


def fills(kind: str) -> Callable[[Fill], Fill]:
    """Registers a value kind."""

    def register(fill: Fill) -> Fill:
        FILLS[kind] = fill
        return fill

    return register


def make_values(kind: str, wish: Wish) -> torch.Tensor:
    """The elements of an input, as a contiguous double (or bool) tensor."""
    return FILLS[kind](wish)


def _normal(wish: Wish, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(wish.shape, generator=wish.generator, dtype=torch.float64) * scale


def _randint(wish: Wish, low: int, high: int, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    return torch.randint(low, high, shape or wish.shape, generator=wish.generator)


@fills("normal")
def normal(wish: Wish) -> torch.Tensor:
    """Standard normal times `scale`, plus `shift`."""
    return _normal(wish, wish.number("scale", 1.0)) + wish.number("shift", 0.0)


@fills("weights")
def weights(wish: Wish) -> torch.Tensor:
    """Normal over the root of the fan-in (axis -2), so that a projection keeps the scale of its input."""
    fan_in = wish.shape[-2] if len(wish.shape) > 1 else wish.shape[-1]
    return _normal(wish, wish.number("scale", 1.0) / math.sqrt(fan_in))


@fills("integers")
def integers(wish: Wish) -> torch.Tensor:
    """Whole numbers from -`most` to `most`: small enough that sums of their products stay exact."""
    most = int(wish.number("most", 2 if wish.dtype in ("bfloat16", "float16") else 6))
    return _randint(wish, -most, most + 1).double()


@fills("positions")
def positions(wish: Wish) -> torch.Tensor:
    """Each element says where it is: a secret base plus its index. Random whole numbers where that is not exact."""
    count = math.prod(wish.shape)
    base = int(_randint(wish, 1, 1000, (1,)))
    if base + count < EXACT_UP_TO.get(wish.dtype, 2**53):
        return torch.arange(base, base + count, dtype=torch.float64).view(wish.shape)
    most = EXACT_UP_TO[wish.dtype]
    return _randint(wish, -most, most + 1).double()


@fills("per-head")
def per_head(wish: Wish) -> torch.Tensor:
    """Normal around a constant of its own for each index of `axis` (1 when absent)."""
    axis = int(wish.number("axis", 1))
    heads = torch.arange(wish.shape[axis], dtype=torch.float64) - (wish.shape[axis] - 1) / 2
    shape = [1] * len(wish.shape)
    shape[axis] = wish.shape[axis]
    return _normal(wish, 0.5) + heads.view(shape) * wish.number("gap", 1.0)


@fills("hostile")
def hostile(wish: Wish) -> torch.Tensor:
    """Logits that overflow a careless exponential: multiples of 64, one maximum at least 64 above the rest.

    Exactly representable in 16 bit. `most` bounds the size, `shift` moves all (very negative rows), `spread` moves
    each row by its own multiple of 64 up to that.
    """
    most = int(wish.number("most", 8192)) // 64
    logits = _randint(wish, -most, most - 1).double() * 64
    winner = _randint(wish, 0, wish.shape[-1], (*wish.shape[:-1], 1))
    spread = int(wish.number("spread", 0)) // 64
    rows = _randint(wish, -spread, spread + 1, (*wish.shape[:-1], 1)).double() * 64
    return logits.scatter(-1, winner, float(most * 64)) + rows + wish.number("shift", 0.0)


@fills("one-hot")
def one_hot(wish: Wish) -> torch.Tensor:
    """Vectors along one feature each, `scale` long: query times key is scale**2 for one key and 0 for the rest.

    `pattern: keys` gives token j feature j; `pattern: queries` gives token i the feature of a token no later.
    Needs as many features as tokens. The scaled logits are exact, far above any overflow, and without ties.
    """
    *_, seq, features = wish.shape
    index = torch.arange(seq).expand(wish.shape[:-1])
    if wish.options.get("pattern", "keys") == "queries":
        index = (torch.rand(wish.shape[:-1], generator=wish.generator) * (index + 1)).long()
    return torch.nn.functional.one_hot(index % features, features).double() * wish.number(
        "scale", 64
    ) + wish.number("shift", 0.0)


@fills("masked")
def masked(wish: Wish) -> torch.Tensor:
    """Normal logits of which some are -inf; each row keeps at least one, a share `alone` of the rows exactly one."""
    logits = _normal(wish, wish.number("scale", 1.0))
    drop = torch.rand(wish.shape, generator=wish.generator) < 0.4
    alone = torch.rand(wish.shape[:-1], generator=wish.generator) < wish.number("alone", 0.25)
    keeper = _randint(wish, 0, wish.shape[-1], (*wish.shape[:-1], 1))
    drop = (drop | alone.unsqueeze(-1)).scatter(-1, keeper, False)
    return logits.masked_fill(drop, -math.inf)


@fills("bool")
def boolean(wish: Wish) -> torch.Tensor:
    """True with probability `share`."""
    return torch.rand(wish.shape, generator=wish.generator) < wish.number("share", 0.5)


@fills("keep")
def keep(wish: Wish) -> torch.Tensor:
    """A padding mask, True = attend: rows padded left, right or holed, unequal; `dead: true` empties one row.

    `pattern` fixes the kind (left, right, holes); otherwise it changes from row to row. Each row that is not dead
    keeps at least `least` (1) keys.
    """
    batch, seq = wish.shape
    room = max(seq - int(wish.number("least", 1)), 1)
    kinds = ("left", "right", "holes")
    mask = torch.ones(batch, seq, dtype=torch.bool)
    for row in range(batch):
        kind = wish.options.get("pattern") or kinds[row % 3]
        gone = 1 + (row + int(_randint(wish, 0, room, (1,)))) % room
        if kind == "left":
            mask[row, :gone] = seq == 1
        elif kind == "right":
            mask[row, seq - gone :] = seq == 1
        else:
            mask[row, torch.randperm(seq, generator=wish.generator)[:gone]] = seq == 1
    if wish.options.get("dead"):
        mask[int(_randint(wish, 0, batch, (1,)))] = False
    return mask


@fills("ids")
def ids(wish: Wish) -> torch.Tensor:
    """Whole numbers from `low` to `high` inclusive."""
    low, high = int(wish.number("low", 0)), int(wish.number("high", 3))
    return _randint(wish, low, high + 1).double()
