"""Where each element came from, in the reader's words; silence where values do not tell."""

from __future__ import annotations

from typing import Any

import torch

from grader.inputs import Phase, Planner, Trial
from grader.provenance import Moved, Origin, moved, position_inputs, words
from grader.spec.model import Problem
from tests.tiny import case, tiny

SPLIT: dict[str, Any] = {
    "inputs": {"x": {"shape": "B S (H d)"}, "num_heads": "H"},
    "returns": "B H S d",
    "cases": [case(sizes={"B": 2, "S": 3, "H": 4, "d": 5})],
}


def prepared(dtype: str = "float32", **fields: Any) -> tuple[Problem, Trial]:
    problem = tiny("def reference(x, num_heads):\n    return x", **{**SPLIT, **fields}).problem
    planner = Planner(problem, "1")
    return problem, planner.trial(problem.cases[0], Phase.EXACT, dtype, "plain")


def split(trial: Trial) -> tuple[torch.Tensor, torch.Tensor]:
    """The right split and the one that is viewed straight."""
    x = trial.argument("x").of(trial.buffers)
    return x.view(2, 3, 4, 5).transpose(1, 2), x.reshape(2, 4, 3, 5)


def test_an_element_is_traced_to_its_head_and_token() -> None:
    problem, trial = prepared()
    right, wrong = split(trial)
    first = moved(problem, trial, right, wrong)[0]
    assert first == Moved(
        (0, 0, 1, 0),
        holds=Origin("x", {"B": 0, "S": 0, "H": 1, "d": 0}),
        expected=Origin("x", {"B": 0, "S": 1, "H": 0, "d": 0}),
    )
    assert words(first.holds, first.expected, inputs=1) == "head 1 of token 0"
    assert words(first.expected, first.holds, inputs=1) == "head 0 of token 1"


def test_only_a_few_are_named() -> None:
    problem, trial = prepared()
    assert len(moved(problem, trial, *split(trial))) == 6


def test_strided_memory_is_seen_through() -> None:
    problem, trial = prepared(cases=[{**SPLIT["cases"][0], "layouts": {"x": "fused"}}])
    right, wrong = split(trial)
    assert moved(problem, trial, right, wrong)[0].index == (0, 0, 1, 0)


def test_a_value_that_no_input_holds_is_not_traced() -> None:
    problem, trial = prepared()
    right, _ = split(trial)
    assert moved(problem, trial, right, right + 1e6) == []
    assert moved(problem, trial, right, right + 0.5) == []
    assert moved(problem, trial, right, torch.full_like(right, float("nan"))) == []


def test_a_value_that_two_inputs_hold_is_not_traced() -> None:
    problem, trial = prepared(
        inputs={"x": {"shape": "B S (H d)"}, "y": {"shape": "B S (H d)"}, "num_heads": "H"}
    )
    one, two = (trial.argument(name).of(trial.buffers) for name in "xy")
    both = set(one.flatten().tolist()) & set(two.flatten().tolist())
    found = moved(problem, trial, one, one.flip(0))
    assert not [m for m in found if float(one.flip(0)[m.index]) in both]


def test_nothing_is_said_without_positions() -> None:
    problem, trial = prepared(values="normal", numbers="real")
    assert position_inputs(problem, trial) == []
    assert moved(problem, trial, *split(trial)) == []


def test_nothing_is_said_where_a_precision_cannot_count() -> None:
    problem, trial = prepared("bfloat16", cases=[case(sizes={"B": 9, "S": 7, "H": 4, "d": 5})])
    assert position_inputs(problem, trial) == []


def test_nothing_is_said_of_another_shape() -> None:
    problem, trial = prepared()
    right, _ = split(trial)
    assert moved(problem, trial, right, right.flatten()) == []


def test_inputs_are_named_where_there_are_several() -> None:
    one, two = Origin("q", {"S": 1}), Origin("k", {"S": 1})
    assert words(one, two, inputs=1) == "q: token 1"
    assert words(one, Origin("q", {"S": 2}), inputs=2) == "q: token 1"
    assert words(one, Origin("q", {"S": 2}), inputs=1) == "token 1"


def test_names_of_axes_in_words() -> None:
    origin = Origin("x", {"B": 1, "K": 2, "G": 3, "Sq": 4, "Sk": 5, "n": 6})
    other = Origin("x", {"B": 0, "K": 0, "G": 0, "Sq": 0, "Sk": 0, "n": 0})
    said = "n 6 of key 5 of query 4 of group member 3 of K/V head 2 of batch row 1"
    assert words(origin, other, inputs=1) == said
