"""What each value kind promises, in every precision and in every process."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.inputs import generator_for
from grader.spec.model import ValueKind
from grader.values import EXACT_UP_TO, FILLS, Wish, make_values

ROOT = Path(__file__).resolve().parents[1]
DTYPE = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
SEEDS = [str(seed) for seed in range(20)]


def made(
    kind: str, shape: tuple[int, ...], dtype: str = "float32", seed: str = "1", **options: Any
) -> torch.Tensor:
    return make_values(kind, Wish(shape, dtype, options, {"d": 4, "S": 7}, generator_for(seed, kind)))


def same_in(dtype: str, values: torch.Tensor) -> bool:
    return torch.equal(values.to(DTYPE[dtype]).double(), values.double())


def test_every_kind_of_the_format_has_its_function() -> None:
    assert set(FILLS) == set(ValueKind.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", FILLS)
def test_the_shape_is_the_asked_one_and_the_seed_decides(kind: str) -> None:
    shape = (5, 7) if kind == "keep" else (2, 3, 7, 9)
    one, same, other = made(kind, shape), made(kind, shape), made(kind, shape, seed="2")
    assert tuple(one.shape) == shape
    assert one.dtype in (torch.float64, torch.bool)
    assert torch.equal(one, same)
    if kind != "one-hot":
        assert not torch.equal(one, other)


def test_normal_is_scaled_and_shifted_by_expressions() -> None:
    plain, moved = made("normal", (50, 7)), made("normal", (50, 7), scale="d", shift="-S")
    assert torch.allclose(moved, plain * 4 - 7, rtol=1e-15)
    assert 0.9 < float(plain.std()) < 1.1


def test_weights_keep_the_scale_of_what_they_multiply() -> None:
    x, w = made("normal", (200, 64)), made("weights", (64, 32))
    assert 0.9 < float((x @ w).std()) < 1.1


@pytest.mark.parametrize("dtype", EXACT_UP_TO)
def test_sums_of_products_of_integers_stay_exact(dtype: str) -> None:
    x, w = (made("integers", shape, dtype) for shape in ((9, 32), (32, 9)))
    assert same_in(dtype, x)
    most = float((x.abs() @ w.abs()).max())
    assert most <= EXACT_UP_TO[dtype]
    assert torch.equal((x.to(DTYPE[dtype]) @ w.to(DTYPE[dtype])).double(), x @ w)


def test_integers_take_their_bound_from_the_problem() -> None:
    assert set(made("integers", (500,), most="d // 4").tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("dtype", EXACT_UP_TO)
@pytest.mark.parametrize("seed", SEEDS)
def test_positions_are_exact_and_say_where_they_were(dtype: str, seed: str) -> None:
    values = made("positions", (2, 5, 12), dtype, seed)
    assert same_in(dtype, values)
    assert torch.equal(values, values.round())
    flat = values.flatten()
    if dtype in ("float32", "float64"):
        assert torch.equal(flat - flat[0], torch.arange(120).double())
        assert flat[0] >= 1


def test_positions_hide_where_they_begin() -> None:
    assert len({float(made("positions", (3,), seed=seed).flatten()[0]) for seed in SEEDS}) > 15


def test_too_many_positions_for_a_precision_are_random_whole_numbers() -> None:
    values = made("positions", (40, 40), "bfloat16")
    assert same_in("bfloat16", values)
    assert float(values.abs().max()) <= 256
    assert len(set(values.flatten().tolist())) > 300


def test_each_head_has_a_constant_of_its_own() -> None:
    means = made("per-head", (2, 4, 99, 9)).mean((0, 2, 3))
    assert torch.allclose(means, torch.tensor([-1.5, -0.5, 0.5, 1.5]).double(), atol=0.1)
    means = made("per-head", (4, 9, 99), axis=0, gap=10).mean((1, 2))
    assert torch.allclose(means, torch.tensor([-15.0, -5, 5, 15]).double(), atol=0.2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", [{}, {"most": 512}, {"shift": -1024}])
def test_hostile_rows_have_one_maximum_far_above_the_rest(seed: str, options: dict[str, int]) -> None:
    values = made("hostile", (2, 3, 4, 11), seed=seed, **options)
    first, second = values.topk(2, -1).values.unbind(-1)
    assert float((first - second).min()) >= 64
    assert bool((values % 64 == 0).all())
    assert same_in("float16", values)
    assert same_in("bfloat16", values)
    assert float(values.max()) == options.get("most", 8192) + options.get("shift", 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_hot_keys_meet_one_query_each(seed: str) -> None:
    keys = made("one-hot", (2, 3, 5, 8), seed=seed)
    queries = made("one-hot", (2, 3, 5, 8), seed=seed, pattern="queries", scale=32)
    scores = queries @ keys.mT
    assert set(scores.flatten().tolist()) == {0.0, 64.0 * 32.0}
    assert bool(((scores > 0).sum(-1) == 1).all())
    assert not bool(scores.triu(1).any()), "a query sees its own token or one before it"


@pytest.mark.parametrize("seed", SEEDS)
def test_masked_rows_keep_one_and_some_keep_just_one(seed: str) -> None:
    values = made("masked", (2, 3, 9, 7), seed=seed)
    kept = torch.isfinite(values).sum(-1)
    assert int(kept.min()) == 1
    assert int(kept.max()) > 1
    assert not bool(values.isnan().any())
    assert bool((values[~torch.isfinite(values)] == -math.inf).all())


def test_bool_takes_a_share() -> None:
    assert made("bool", (9, 99)).dtype == torch.bool
    assert 0.05 < float(made("bool", (99, 99), share=0.1).double().mean()) < 0.15


def runs(row: torch.Tensor) -> int:
    """How many times a mask changes along its row."""
    return int((row[1:] != row[:-1]).sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pattern", ["left", "right"])
def test_padding_is_on_the_named_side(pattern: str, seed: str) -> None:
    mask = made("keep", (6, 7), seed=seed, pattern=pattern)
    inner, outer = (0, -1) if pattern == "right" else (-1, 0)
    assert bool(mask[:, inner].all())
    assert not bool(mask[:, outer].any())
    assert all(runs(row) == 1 for row in mask)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_padded_left_right_and_holed_by_turns(seed: str) -> None:
    mask = made("keep", (6, 9), seed=seed)
    assert bool(mask.any(-1).all()), "no row is empty unless asked"
    assert not bool(mask.all(-1).any()), "every row loses something"
    assert not bool(mask[0, 0])
    assert not bool(mask[1, -1])


@pytest.mark.parametrize("seed", SEEDS)
def test_one_row_is_dead_where_asked(seed: str) -> None:
    assert int((~made("keep", (4, 9), seed=seed, dead=True).any(-1)).sum()) == 1


def test_a_single_key_is_kept() -> None:
    assert bool(made("keep", (3, 1)).all())


def test_ids_stay_in_their_range() -> None:
    assert set(made("ids", (500,), low=2, high="d").tolist()) == {2.0, 3.0, 4.0}


TELL = """
import hashlib, sys
from grader.inputs import generator_for
from grader.values import FILLS, Wish, make_values
for kind in FILLS:
    shape = (5, 7) if kind == "keep" else (2, 3, 7, 9)
    wish = Wish(shape, "float32", {}, {}, generator_for("a seed", "key"))
    print(kind, hashlib.sha256(make_values(kind, wish).double().numpy().tobytes()).hexdigest())
"""


def test_a_seed_gives_the_same_numbers_in_every_process() -> None:
    here = []
    for kind in FILLS:
        shape = (5, 7) if kind == "keep" else (2, 3, 7, 9)
        values = make_values(kind, Wish(shape, "float32", {}, {}, generator_for("a seed", "key")))
        here.append(f"{kind} {hashlib.sha256(values.double().numpy().tobytes()).hexdigest()}")
    there = subprocess.run(
        [sys.executable, "-c", TELL],
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert there.stdout.split("\n")[:-1] == here
