"""Where elements lie: the named layouts, paddings and steps, against torch itself."""

# ruff: noqa: E501 - a row of a table and a message are one line

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.layouts import Strided, lay_out
from grader.spec.model import LayoutName, MemoryLayout

NAMES: tuple[LayoutName, ...] = LayoutName.__args__  # type: ignore[attr-defined]
SIZES = {"D": 6}


def seen(view: Strided) -> torch.Tensor:
    """The view of a buffer that numbers its elements."""
    return torch.arange(view.numel).as_strided(view.shape, view.stride, view.offset)


# shape, layout, strides, offset, elements of the buffer
TABLE: list[tuple[tuple[int, ...], LayoutName, tuple[int, ...], int, int]] = [
    ((2, 3, 4), "dense", (12, 4, 1), 0, 24),
    ((2, 3, 4), "fused", (36, 12, 1), 4, 72),
    ((2, 3, 4), "transposed", (12, 1, 3), 0, 24),
    ((2, 3, 4, 5), "transposed", (60, 5, 15, 1), 0, 120),
    ((3, 4), "transposed", (1, 3), 0, 12),
    ((4,), "transposed", (1,), 0, 4),
    ((2, 3, 4), "sequence-first", (4, 8, 1), 0, 24),
    ((2, 3, 4), "sliced", (24, 4, 1), 4, 48),
    ((4,), "sliced", (1,), 1, 7),
    ((2, 3, 4), "strided", (24, 8, 2), 0, 48),
]


@pytest.mark.parametrize(("shape", "layout", "stride", "offset", "numel"), TABLE)
def test_the_named_layouts(
    shape: tuple[int, ...], layout: LayoutName, stride: tuple[int, ...], offset: int, numel: int
) -> None:
    assert lay_out(shape, layout, {}) == Strided(shape, stride, offset, numel)


def test_fused_is_the_middle_third_of_a_fused_projection() -> None:
    fused = torch.arange(2 * 3 * 12).view(2, 3, 12)
    assert torch.equal(seen(lay_out((2, 3, 4), "fused", {})), fused[..., 4:8])


def test_transposed_is_the_memory_before_a_swap() -> None:
    memory = torch.arange(120).view(2, 4, 3, 5)
    assert torch.equal(seen(lay_out((2, 3, 4, 5), "transposed", {})), memory.transpose(1, 2))


def test_sequence_first_is_the_memory_of_a_sequence_first_model() -> None:
    assert torch.equal(
        seen(lay_out((2, 3, 4), "sequence-first", {})), torch.arange(24).view(3, 2, 4).transpose(0, 1)
    )


def test_padding_takes_expressions_and_axes_from_the_end() -> None:
    layout = MemoryLayout(pad={-1: ("D", "2*D"), 0: (1, 0)})
    memory = torch.arange(3 * 3 * 22).view(3, 3, 22)
    assert torch.equal(seen(lay_out((2, 3, 4), layout, SIZES)), memory[1:, :, 6:10])


def test_order_and_step_go_together() -> None:
    layout = MemoryLayout(order=[1, 0], step={0: 3})
    memory = torch.arange(4 * 9).view(4, 9)
    assert torch.equal(seen(lay_out((3, 4), layout, {})), memory.t()[::3])


@pytest.mark.parametrize("layout", NAMES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 1), (2, 3), (2, 0, 4), (2, 3, 4), (2, 3, 4, 5)])
def test_every_element_has_a_place_of_its_own(layout: LayoutName, shape: tuple[int, ...]) -> None:
    view = lay_out(shape, layout, {})
    places = seen(view).flatten().tolist()
    assert len(set(places)) == math.prod(shape)
    assert all(0 <= place < view.numel for place in places)


@pytest.mark.parametrize(
    ("layout", "dense"),
    [("dense", True), ("transposed", True), ("sequence-first", True), ("fused", False), ("sliced", False), ("strided", False)],
)  # fmt: skip
def test_dense_means_without_holes(layout: LayoutName, dense: bool) -> None:
    assert lay_out((2, 3, 4), layout, {}).dense is dense


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_any_layout_addresses_each_element_once_within_its_buffer(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    axes = list(range(len(shape)))
    few = st.integers(0, 2)
    layout = MemoryLayout(
        order=data.draw(st.permutations(axes)),
        pad=data.draw(st.dictionaries(st.sampled_from(axes), st.tuples(few, few))),
        step=data.draw(st.dictionaries(st.sampled_from(axes), st.integers(1, 3))),
    )
    view = lay_out(shape, layout, {})
    places = seen(view).flatten().tolist()
    assert len(set(places)) == len(places) == math.prod(shape)
    assert max(places) < view.numel
    assert min(places) == view.offset
    if view.dense:
        assert sorted(places) == list(range(min(places), min(places) + len(places)))
