"""Shapes, expressions and drawn sizes: laws first, then each message."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.errors import ExitCode, Fault
from grader.spec.shapes import (
    ExpressionError,
    NotationError,
    ShapeError,
    SizeError,
    evaluate,
    parse_expression,
    parse_shape,
    resolve_sizes,
)

NAMES = ["B", "S", "H", "d", "Sq", "num_kv", "_x1"]
SIZES = dict(zip(NAMES, [2, 5, 4, 3, 7, 11, 1], strict=True))

factors = st.one_of(st.sampled_from(NAMES), st.integers(0, 99).map(str))
axes = st.one_of(factors, st.lists(factors, min_size=1, max_size=4).map(lambda parts: f"({' '.join(parts)})"))
spaces = st.sampled_from([" ", "  ", "\t"])


@given(st.lists(axes, max_size=5), spaces)
def test_a_printed_shape_reads_as_itself(parts: list[str], space: str) -> None:
    shape = parse_shape(space.join(parts))
    again = parse_shape(str(shape))
    assert again.labels == shape.labels
    assert str(again) == str(shape)
    assert again.resolve(SIZES) == shape.resolve(SIZES)


@given(st.lists(axes, max_size=5))
def test_an_axis_is_the_product_of_its_factors(parts: list[str]) -> None:
    sizes = [
        math.prod(SIZES[one] if one in SIZES else int(one) for one in part.strip("()").split())
        for part in parts
    ]
    assert parse_shape(" ".join(parts)).resolve(SIZES) == tuple(sizes)


def test_labels_and_names() -> None:
    shape = parse_shape("B S (3 H d) S")
    assert shape.labels == ("B", "S", "3*H*d", "S")
    assert shape.names == ("B", "S", "H", "d")
    assert parse_shape("").resolve({}) == ()
    assert parse_shape("2 3 10").resolve({}) == (2, 3, 10)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("B S (H d", 5, "`(` is never closed"),
        ("B S H d)", 8, "`)` without `(`"),
        ("B () S", 4, "a group needs at least one factor"),
        ("B (H (d 2))", 6, "a group inside a group; write all factors in one"),
        ("B H*d", 4, "unexpected `*`: a shape holds names, whole numbers, spaces and parentheses"),
        ("B, S", 2, "unexpected `,`: a shape holds names, whole numbers, spaces and parentheses"),
        ("B 3d", 3, "unexpected `3`: a shape holds names, whole numbers, spaces and parentheses"),
        ("B -1", 3, "unexpected `-`: a shape holds names, whole numbers, spaces and parentheses"),
    ],
)
def test_a_malformed_shape_is_refused_at_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_shape(text)
    assert (caught.value.what, caught.value.column) == (message, column)
    assert caught.value.where == f'"{text}", column {column}'
    assert (caught.value.fault, caught.value.exit_code) == (Fault.PROBLEM, ExitCode.BROKEN_PROBLEM)


def test_an_unknown_size_in_a_shape() -> None:
    with pytest.raises(ShapeError) as caught:
        parse_shape("B (H num_kw)").resolve(SIZES)
    assert caught.value.what == "unknown size `num_kw`, did you mean `num_kv`?"
    assert caught.value.column == 6


# --- expressions ------------------------------------------------------------------------------------------


def _joined(parts: tuple[str, str, str]) -> str:
    return f"({parts[0]} {parts[1]} {parts[2]})"


leaves = st.one_of(
    st.sampled_from(NAMES), st.integers(0, 12).map(str), st.sampled_from(["0.5", "2.25", "True"])
)
operators = st.sampled_from(["+", "-", "*", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, operators, inner).map(_joined),
        st.tuples(inner, operators, inner).map(lambda parts: " ".join(parts)),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=6,
)


def _python(text: str) -> Any:
    try:
        value = eval(text, {"__builtins__": {}}, dict(SIZES))
    except (ZeroDivisionError, OverflowError):
        return None
    return None if isinstance(value, complex) else value


def _evaluated(text: str) -> Any:
    """The value, or the error."""
    try:
        return evaluate(text, SIZES)
    except ExpressionError as error:
        return error


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_an_expression_means_what_python_means(text: str) -> None:
    value = _evaluated(text)
    if isinstance(value, ExpressionError):
        # Python is not asked for what is too large: it would compute for minutes.
        assert value.what == "the result is too large" or _python(text) is None
    else:
        expected = _python(text)
        assert value == expected
        assert type(value) is type(expected)


@given(st.text(max_size=60))
def test_any_text_has_a_value_or_an_expression_error(text: str) -> None:
    value = _evaluated(text)
    if isinstance(value, ExpressionError):
        assert 1 <= value.column <= len(text) + 1


def test_what_is_no_text_is_its_own_value() -> None:
    assert [evaluate(value, {}) for value in (3, 2.5, True, None)] == [3, 2.5, True, None]
    assert evaluate(" H * d ", SIZES) == 12
    assert evaluate("d**-0.5", SIZES) == 3**-0.5
    assert evaluate("1 < d < 9", SIZES) is True


ALLOWED = "only names, numbers, + - * // % **, comparisons, parentheses, True, False and None are allowed"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "the expression is empty"),
        ("H * * d", 5, "not an expression"),
        ("H/2 + 1", 1, "`/` is not allowed, sizes are whole numbers: use `//`"),
        ("1 + len(x)", 5, ALLOWED),
        ("H.real", 1, ALLOWED),
        ("1 + 'a'", 5, ALLOWED),
        ("H if d else S", 1, ALLOWED),
        ("H and d", 1, ALLOWED),
        ("1j", 1, ALLOWED),
        ("H * hedz", 5, "unknown size `hedz`"),
        ("  H * num_kw", 7, "unknown size `num_kw`, did you mean `num_kv`?"),
        ("1 + H // 0", 5, "division by zero"),
        ("9 ** 9 ** 9", 1, "the result is too large"),
        ("10.0 ** 400", 1, "the result is too large"),
        ("(0 - 8) ** 0.5", 1, "a root of a negative number has no value here"),
        ("2 + None", 1, "cannot combine 2 and None"),
        ("H" * 201, 1, "the expression is longer than 200 characters"),
    ],
)
def test_what_is_no_arithmetic_is_refused_at_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, SIZES)
    assert (caught.value.what, caught.value.column) == (message, column)


def test_hostile_expressions_end_at_once() -> None:
    for text in (
        "(" * 190 + "1" + ")" * 9,
        "-" * 199 + "1",
        "2**" * 60 + "2",
        "9**99**9**9",
        "\0",
        "1" * 200,
    ):
        try:
            evaluate(text, {})
        except ExpressionError:
            continue


def test_uses_know_their_columns() -> None:
    uses = [(use.name, use.column) for use in parse_expression(" B*S + é_1*B".replace("é_1", "x")).uses]
    assert uses == [("B", 2), ("S", 4), ("x", 8), ("B", 10)]


# --- sizes ------------------------------------------------------------------------------------------------

choices = st.one_of(
    st.tuples(st.integers(0, 6), st.integers(0, 4)).map(lambda pair: f"{pair[0]}..{pair[0] + pair[1]}"),
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
)


def _candidates(choice: str | list[int]) -> list[int]:
    if isinstance(choice, str):
        low, high = choice.split("..")
        return list(range(int(low), int(high) + 1))
    return choice


@settings(max_examples=200, deadline=None)
@given(st.lists(choices, min_size=1, max_size=5), st.integers(0, 99))
def test_drawn_sizes_differ_where_the_candidates_allow_it(drawn: list[Any], seed: int) -> None:
    sizes = resolve_sizes({f"n{i}": one for i, one in enumerate(drawn)}, random.Random(seed))
    assert all(size in _candidates(one) for size, one in zip(sizes.values(), drawn, strict=True))
    possible = any(len(set(combo)) == len(combo) for combo in itertools.product(*map(_candidates, drawn)))
    assert (len(set(sizes.values())) == len(drawn)) == possible


def test_sizes_are_the_same_for_the_same_draw_and_vary_with_it() -> None:
    spec = {"B": 2, "S": "2..40", "H": [2, 3, 6], "D": "H*d", "d": "1..9"}
    with pytest.raises(ExpressionError, match="unknown size `d`"):
        resolve_sizes(spec, random.Random(1))
    spec = {"B": 2, "S": "2..40", "H": [2, 3, 6], "d": "1..9", "D": "H*d"}
    assert resolve_sizes(spec, random.Random(1)) == resolve_sizes(spec, random.Random(1))
    seen = [resolve_sizes(spec, random.Random(seed)) for seed in range(40)]
    assert len({tuple(sizes.values()) for sizes in seen}) > 20
    assert {sizes["H"] for sizes in seen} == {3, 6}, "2 is taken by B"
    assert all(sizes["D"] == sizes["H"] * sizes["d"] and list(sizes) == list(spec) for sizes in seen)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("5..2", "`n`: the range 5..2 is empty, its end is below its start"),
        ("2..x", "`n`: a range is written `2..5`, found `2..x`"),
        ("0..999999", "`n`: the range 0..999999 is wider than 100000"),
        ([], "`n` has an empty list to draw from"),
        ([1, -2], "`n` is -2, a size cannot be negative"),
        (-1, "`n` is -1, a size cannot be negative"),
        (True, "`n` must be a whole number, found true"),
        ("1 - 2", "`n` is -1, a size cannot be negative"),
        ("0.5", "`n` must be a whole number, found 0.5"),
        ("1 < 2", "`n` must be a whole number, found True"),
    ],
)
def test_a_size_that_is_none_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(SizeError) as caught:
        resolve_sizes({"n": spec}, random.Random(0))
    assert caught.value.what == message
    assert isinstance(caught.value, NotationError)
    assert caught.value.name == "n"
