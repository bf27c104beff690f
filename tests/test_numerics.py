"""The three rules: near misses are caught, honest versions pass, and the laws that every rule obeys."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.numerics import EPS, Gap, exact_gap, hygiene_gap, logic_gap

LOWER = ["float32", "bfloat16", "float16"]
DTYPE = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
SHAPE = (2, 3, 17, 8)


def inputs(dtype: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values, already rounded to a precision."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (
        torch.randn(SHAPE, generator=generator, dtype=torch.float64).to(DTYPE[dtype]) for _ in range(3)
    )
    return q, k, v


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """Op by op in the precision of the inputs."""
    scores = q @ k.mT * (scale / math.sqrt(q.shape[-1]))
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


def scaled_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax((q / math.sqrt(q.shape[-1])) @ k.mT, -1) @ v


def normalised_last(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    return (weights @ v) / weights.sum(-1, keepdim=True)


def softmax_in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1, dtype=torch.float32).to(q.dtype) @ v


def wider_inside(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q.float(), k.float(), v.float()).to(q.dtype)


def library(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


HONEST = [scaled_first, normalised_last, softmax_in_float32, wider_inside, library]
Version = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def zeroed_row(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = attention(q, k, v).clone()
    out[1, 2, 5] = 0
    return out


def slightly_off(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, 1.003)


def off(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, 1.01)


def zeros(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(q)


def average(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return v.mean(-2, keepdim=True).expand(SHAPE)


NEAR = [zeroed_row, slightly_off, off, zeros, average]


def in_logic(version: Version) -> Gap | None:
    q, k, v = inputs("float64")
    return logic_gap(version(q, k, v), attention(q, k, v))


def in_hygiene(version: Version, dtype: str, seed: int = 0) -> Gap | None:
    q, k, v = inputs(dtype, seed)
    oracle = attention(q.double(), k.double(), v.double())
    return hygiene_gap(version(q, k, v), oracle, attention(q, k, v), dtype)


# Logic


@pytest.mark.parametrize("version", HONEST)
def test_honest_versions_pass_the_logic_rule(version: Version) -> None:
    assert in_logic(version) is None


@pytest.mark.parametrize("version", NEAR)
def test_near_misses_fail_the_logic_rule(version: Version) -> None:
    assert in_logic(version) is not None


def test_a_scale_that_is_0_3_percent_off_is_far_over_the_logic_bound() -> None:
    gap = in_logic(slightly_off)
    assert gap is not None
    assert gap.times > 30


def test_the_zeroed_row_is_named() -> None:
    gap = in_logic(zeroed_row)
    assert gap is not None
    assert gap.index[:3] == (1, 2, 5)
    assert gap.actual == 0
    assert 1 <= gap.wrong <= SHAPE[-1]
    assert gap.total == math.prod(SHAPE)


def test_bfloat16_inside_double_fails_and_float32_inside_passes() -> None:
    q, k, v = inputs("float64")
    right = attention(q, k, v)
    assert logic_gap(attention(q.bfloat16(), k.bfloat16(), v.bfloat16()), right) is not None
    assert logic_gap(attention(q.float(), k.float(), v.float()), right) is None


def test_rounding_noise_around_an_expected_zero_passes() -> None:
    assert logic_gap(torch.full((3, 4), 1e-15, dtype=torch.float64), torch.zeros(3, 4)) is None
    assert logic_gap(torch.full((3, 4), 1e-9, dtype=torch.float64), torch.zeros(3, 4)) is not None


# Hygiene


@pytest.mark.parametrize("version", HONEST)
@pytest.mark.parametrize("dtype", LOWER)
def test_honest_versions_pass_in_lower_precision(version: Version, dtype: str) -> None:
    assert [seed for seed in range(10) if in_hygiene(version, dtype, seed)] == []


@pytest.mark.parametrize("version", [zeroed_row, zeros, average])
@pytest.mark.parametrize("dtype", LOWER)
def test_answers_that_hold_nothing_fail_in_lower_precision(version: Version, dtype: str) -> None:
    assert all(in_hygiene(version, dtype, seed) for seed in range(10))


@pytest.mark.parametrize("version", [slightly_off, off])
def test_a_scale_that_is_off_fails_in_float32(version: Version) -> None:
    assert all(in_hygiene(version, "float32", seed) for seed in range(10))


@pytest.mark.parametrize("inner", ["bfloat16", "float16"])
def test_16_bit_inside_float32_fails(inner: str) -> None:
    def version(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attention(q.to(DTYPE[inner]), k.to(DTYPE[inner]), v.to(DTYPE[inner])).float()

    for seed in range(10):
        gap = in_hygiene(version, "float32", seed)
        assert gap is not None
        assert gap.honest is not None
        assert gap.honest > 100


@pytest.mark.parametrize("dtype", LOWER)
def test_one_element_far_off_in_an_honest_row_fails(dtype: str) -> None:
    """The row's rms forgives it where rows are long; the largest error does not."""
    right = torch.ones(1, 4096, dtype=torch.float64)
    honest = right + EPS[dtype] / 4
    bad = honest.clone()
    bad[0, 77] += 60 * EPS[dtype] * (16 if dtype == "float32" else 1)
    gap = hygiene_gap(bad, right, honest, dtype)
    assert gap is not None
    assert gap.index == (0, 77)
    assert gap.wrong == 1
    assert hygiene_gap(honest, right, honest, dtype) is None


# NaN and infinities, by position


RULES: dict[str, Callable[[torch.Tensor, torch.Tensor], Gap | None]] = {
    "exact": exact_gap,
    "logic": logic_gap,
    "hygiene": lambda a, g: hygiene_gap(a, g, g, "float32"),
}
ODD = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("odd", ODD)
def test_nan_and_infinities_match_by_position(rule: str, odd: float) -> None:
    right = torch.arange(12, dtype=torch.float64).view(3, 4)
    right[1, 2] = odd
    assert RULES[rule](right.clone(), right) is None
    for other in [*ODD, 5.0]:
        if other == odd or (math.isnan(other) and math.isnan(odd)):
            continue
        wrong = right.clone()
        wrong[1, 2] = other
        gap = RULES[rule](wrong, right)
        assert gap is not None
        assert gap.index == (1, 2)
        assert rule == "exact" or gap.kind == "nonfinite"


@pytest.mark.parametrize("rule", RULES)
def test_the_finite_rest_is_still_judged(rule: str) -> None:
    right = torch.tensor([[-math.inf, 1.0, 2.0], [3.0, 4.0, math.nan]], dtype=torch.float64)
    wrong = right.clone()
    wrong[0, 1] = 1.5
    gap = RULES[rule](wrong, right)
    assert gap is not None
    assert gap.index == (0, 1)
    assert (gap.expected, gap.actual) == (1.0, 1.5)


def test_a_wholly_infinite_result_is_compared() -> None:
    hidden = torch.full((2, 3), -math.inf, dtype=torch.float64)
    assert all(rule(hidden, hidden) is None for rule in RULES.values())
    assert all(rule(torch.zeros(2, 3), hidden) is not None for rule in RULES.values())


# Exact


def test_the_exact_rule_counts_what_differs() -> None:
    right = torch.arange(6).view(2, 3)
    wrong = right.clone()
    wrong[0, 2], wrong[1, 0] = 9, 9
    gap = exact_gap(wrong, right)
    assert gap == Gap(index=(0, 2), expected=2.0, actual=9.0, wrong=2, total=6, times=2.0)


def test_the_exact_rule_takes_booleans_and_scalars() -> None:
    assert exact_gap(torch.tensor(True), torch.tensor(True)) is None
    gap = exact_gap(torch.tensor(True), torch.tensor(False))
    assert gap is not None
    assert (gap.index, gap.expected, gap.actual) == ((), 0.0, 1.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), ()])
def test_empty_tensors_and_scalars_pass(rule: str, shape: tuple[int, ...]) -> None:
    value = torch.ones(shape, dtype=torch.float64)
    assert RULES[rule](value, value) is None


# Laws

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(SIZES)
    some = st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -math.inf, math.nan, 0.0])
    values = draw(st.lists(some, min_size=math.prod(shape), max_size=math.prod(shape)))
    return torch.tensor(values, dtype=torch.float64).view(shape)


@pytest.mark.parametrize("rule", RULES)
@given(value=tensors())
@settings(max_examples=50, deadline=None)
def test_nothing_is_off_from_itself(rule: str, value: torch.Tensor) -> None:
    assert RULES[rule](value, value.clone()) is None


@pytest.mark.parametrize("rule", RULES)
@given(value=tensors(), noise=tensors(), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_the_order_of_rows_does_not_matter(
    rule: str, value: torch.Tensor, noise: torch.Tensor, seed: int
) -> None:
    other = value + noise.flatten()[0] * 1e-6
    order = torch.randperm(value.shape[1], generator=torch.Generator().manual_seed(seed))
    one, two = RULES[rule](other, value), RULES[rule](other[:, order], value[:, order])
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert one.wrong == two.wrong


@given(value=tensors(), power=st.integers(-10, 10))
@settings(max_examples=50, deadline=None)
def test_the_unit_does_not_matter(value: torch.Tensor, power: int) -> None:
    """A power of two scales without rounding; values of order one and above, clear of the noise floor."""
    value = torch.where(value.abs() < 1, torch.ones(()).double(), value)
    other = value * (1 + 2e-5)
    one, two = logic_gap(other, value), logic_gap(other * 2.0**power, value * 2.0**power)
    assert (one is None) == (two is None)


@given(value=tensors(), index=st.integers(0, 1000), factor=st.sampled_from([-1.0, 0.5, 1.01]))
@settings(max_examples=50, deadline=None)
def test_the_gap_names_a_place_that_is_really_off(value: torch.Tensor, index: int, factor: float) -> None:
    wrong = value.clone().flatten()
    wrong[index % wrong.numel()] *= factor
    wrong = wrong.view(value.shape)
    gap = logic_gap(wrong, value)
    if gap is not None:
        assert gap.index == tuple(
            int(i) for i in torch.unravel_index(torch.tensor(index % wrong.numel()), value.shape)
        )
        assert gap.expected == float(value[gap.index])
        assert gap.wrong >= 1
        assert gap.times > 1
