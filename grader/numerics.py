"""How far a result may be from the expected one. Pure functions of tensors.

Three rules, each for its own run (measured in benchmarks/honest.py; change a constant only with that table):

exact:   equal, NaN and infinities by position.
logic:   double precision; every row's rms error at most 1e-5 of the larger of the row's and the tensor's rms.
hygiene: lower precision; against the float64 oracle `g` and the error `l - g` of an honest op-by-op version:
         every row `rms(e) <= 4 L + b eps R` and `max|e| <= 4 max|l - g| + b eps max|g|`.

A row is a vector along the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

LOGIC = 1e-5
# Below this an expected zero is rounding noise of double precision inputs of order one.
NOISE = 1e-12
SLACK = 4.0
ULPS = {"float32": 64.0, "bfloat16": 8.0, "float16": 8.0}
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}


@dataclass(frozen=True)
class Gap:
    """A result that is too far off.

    `times` is how many times the bound the worst row is off (for the exact rule: how many elements differ);
    `honest` how many times the error of an honest version of the same precision, where that is known.
    """

    index: tuple[int, ...]
    expected: float
    actual: float
    wrong: int
    total: int
    times: float
    honest: float | None = None
    kind: str = "value"


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """The usual case, and cheap: the same numbers bit for bit. Tensors with a NaN are never equal here."""
    return one.dtype == other.dtype and torch.equal(one, other)


def exact_gap(actual: torch.Tensor, expected: torch.Tensor) -> Gap | None:
    """None when every element is equal."""
    if _equal(actual, expected):
        return None
    a, g = actual.double(), expected.double()
    differs = ~((a == g) | (a.isnan() & g.isnan()))
    if not bool(differs.any()):
        return None
    return _gap_at(a, g, differs, float(differs.sum()), int(differs.flatten().int().argmax()))


def logic_gap(actual: torch.Tensor, expected: torch.Tensor, bound: float = LOGIC) -> Gap | None:
    """None when every row is within the logic rule."""
    if _equal(actual, expected):
        return None
    a, g = actual.double(), expected.double()
    mismatch = _nonfinite_gap(a, g)
    if mismatch is not None:
        return mismatch
    error, finite = _errors(a, g)
    limits = torch.clamp(bound * _scale(g, finite), min=NOISE)
    return _row_gap(a, g, error, _row_rms(error), limits, None)


def hygiene_gap(actual: torch.Tensor, oracle: torch.Tensor, honest: torch.Tensor, dtype: str) -> Gap | None:
    """None when the result is as good as an honest version of its precision."""
    if _equal(actual, honest):
        return None
    a, g, low = actual.double(), oracle.double(), honest.double()
    mismatch = _nonfinite_gap(a, low)
    if mismatch is not None:
        return mismatch
    error, finite = _errors(a, g)
    honest_error, _ = _errors(low, g)
    slack = ULPS[dtype] * EPS[dtype]
    typical = _rms(honest_error)
    limits = torch.clamp(SLACK * typical + slack * _scale(g, finite), min=EPS[dtype] ** 2)
    found = _row_gap(a, g, error, _row_rms(error), limits, typical)
    if found is not None:
        return found
    top = SLACK * float(honest_error.abs().max()) if error.numel() else 0.0
    top += slack * float((g * finite).nan_to_num(0, 0, 0).abs().max()) if error.numel() else 0.0
    over = error.abs() > max(top, EPS[dtype] ** 2)
    if not bool(over.any()):
        return None
    worst = int(error.abs().flatten().argmax())
    times = float(error.abs().max()) / max(top, 1e-300)
    return _gap_at(a, g, over, times, worst, _ratio(float(error.abs().max()), typical))


def _errors(a: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    finite = torch.isfinite(a) & torch.isfinite(g)
    return torch.where(finite, a - g, torch.zeros((), dtype=torch.float64)), finite


def _rms(t: torch.Tensor) -> float:
    return math.sqrt(float((t * t).mean())) if t.numel() else 0.0


def _row_rms(t: torch.Tensor) -> torch.Tensor:
    return t.square().mean(-1, keepdim=True).sqrt() if t.dim() else t.abs()


def _scale(g: torch.Tensor, finite: torch.Tensor) -> torch.Tensor:
    """The larger of each row's rms and the tensor's, over the finite elements."""
    clean = torch.where(finite, g, torch.zeros((), dtype=torch.float64))
    return torch.clamp(_row_rms(clean), min=_rms(clean))


def _nonfinite_gap(a: torch.Tensor, g: torch.Tensor) -> Gap | None:
    same = (a.isnan() == g.isnan()) & (a.isposinf() == g.isposinf()) & (a.isneginf() == g.isneginf())
    if bool(same.all()):
        return None
    differs = ~same
    return _gap_at(a, g, differs, math.inf, int(differs.flatten().int().argmax()), kind="nonfinite")


def _row_gap(
    a: torch.Tensor,
    g: torch.Tensor,
    error: torch.Tensor,
    rows: torch.Tensor,
    limits: torch.Tensor,
    typical: float | None,
) -> Gap | None:
    over = rows > limits
    if not bool(over.any()):
        return None
    bad = over.expand(error.shape) if error.dim() else over
    differs = bad & (error.abs() > limits.expand(error.shape) * 0.1)
    worst = int(torch.where(bad, error.abs(), torch.zeros((), dtype=torch.float64)).flatten().argmax())
    times = float((rows / limits.clamp(min=1e-300)).max())
    honest = None if typical is None else _ratio(float(rows.max()), typical)
    return _gap_at(a, g, differs, times, worst, honest)


def _ratio(error: float, typical: float) -> float | None:
    return error / typical if typical > 0 else None


def _index_of(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A flat index by axes. torch.unravel_index would import a symbolic algebra system, which takes a second."""
    index: list[int] = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))


def _gap_at(
    a: torch.Tensor,
    g: torch.Tensor,
    differs: torch.Tensor,
    times: float,
    flat: int,
    honest: float | None = None,
    kind: str = "value",
) -> Gap:
    index = _index_of(flat, a.shape)
    return Gap(index, float(g[index]), float(a[index]), int(differs.sum()), a.numel(), times, honest, kind)
