"""Checks are pure functions of a view: what no submission on this machine can show, and what must not count."""

# ruff: noqa: E501 - a row of a table and a message are one line

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from grader.checks.registry import CHECKS, Registered, View, check, registered
from grader.fold import Fold, checks_of, fold, views
from grader.inputs import Phase, Planner
from grader.judge import Task
from grader.observe import Observation, TensorFacts
from grader.plan import plan
from grader.report import Finding, Status
from tests.tiny import case, tiny

SWAP = "def reference(x):\n    return x.transpose(1, 2)"
HALF = case(sizes={"B": 2, "S": 5, "D": 3})


def seen(task: Task, version: str = "reference", **changes: Any) -> Iterator[View]:
    """Every trial of a version, with facts of its results changed by hand."""
    trials = plan(Planner(task.problem, "1"))
    actuals: list[Observation | None] = []
    for trial in trials:
        made = task.versions.observe(version, trial)
        results = [replace(r, **changes) if isinstance(r, TensorFacts) else r for r in made.results]
        actuals.append(replace(made, results=tuple(results)))
    return iter(views(task.problem, trials, actuals, task.versions))


def folded(task: Task, version: str = "reference", **changes: Any) -> dict[str, Fold]:
    looked = list(seen(task, version, **changes))
    return {entry.check: entry for entry in fold(task.problem, looked, len(looked))}


def failed(folds: dict[str, Fold]) -> set[str]:
    return {name for name, entry in folds.items() if entry.status is Status.FAILED}


def test_another_device_is_found_by_device_alone() -> None:
    folds = folded(tiny(SWAP, returns="B D S"), device="cuda")
    assert failed(folds) == {"device"}
    assert folds["device"].findings[0].data == {"result": 0, "expected": "cpu", "actual": "cuda"}


def test_a_view_that_is_claimed_out_of_bounds_is_no_view() -> None:
    task = tiny(SWAP, returns="B D S", checks=[{"name": "no_copy", "options": {"of": "x"}}])
    assert failed(folded(task)) == set()
    for lie in (
        {"offset": 1},
        {"offset": -1},
        {"offset": 1 << 40},
        {"stride": (1 << 40, 1, 3)},
        {"stride": (-15, 1, 3)},
    ):
        folds = folded(task, **lie)
        assert failed(folds) == {"no_copy"}, lie
        assert {f.code for f in folds["no_copy"].findings} == {"false_claim"}


def test_a_view_of_another_input_is_a_copy() -> None:
    task = tiny("def reference(x, y):\n    return x", inputs={"x": {"shape": "B"}, "y": {"shape": "B"}},
                returns="B", checks=[{"name": "no_copy", "options": {"of": "y"}}])  # fmt: skip
    assert {f.code for f in folded(task)["no_copy"].findings} == {"copied"}


@pytest.mark.parametrize("sizes", [{"B": 1, "S": 5, "D": 3}, {"B": 2, "S": 1, "D": 3}])
def test_strides_of_axes_of_size_1_are_never_compared(sizes: dict[str, int]) -> None:
    task = tiny(SWAP, returns="B D S", checks=[{"name": "strides"}], cases=[case(sizes=sizes)])
    one = [axis for axis, n in enumerate((sizes["B"], sizes["D"], sizes["S"])) if n == 1]
    right = task.versions.observe("reference", plan(Planner(task.problem, "1"))[0]).leaves()[0].stride
    assert right is not None
    odd = tuple(77 if axis in one else n for axis, n in enumerate(right))
    assert failed(folded(task, stride=odd)) == set()


def test_strides_of_empty_results_are_never_compared() -> None:
    task = tiny("def reference(x):\n    return x[:0]", returns="0 S D", checks=[{"name": "strides"}])
    assert failed(folded(task, stride=(9, 9, 9))) == set()


def test_contiguity_is_asked_only_where_memory_has_no_holes() -> None:
    copied = "def reference(x):\n    return x.contiguous().clone().transpose(1, 2)"
    checks = [{"name": "contiguous", "options": {"of": "x"}}]
    assert failed(folded(tiny(copied, returns="B D S", checks=checks))) == {"contiguous"}
    holes = [case(layouts={"x": "strided"}), case("dense", layouts={"x": "dense"}, skip=["contiguous"])]
    folds = folded(tiny(copied, returns="B D S", checks=checks, cases=holes))
    assert failed(folds) == set()


def test_an_internal_copy_is_no_explicit_one() -> None:
    task = tiny(
        "def reference(x, h):\n    q = x.unflatten(-1, (h, -1)).transpose(1, 2)\n    return q @ q.mT",
        inputs={"x": {"shape": "B S (H d)"}, "h": "H"}, returns="B H S S", values="integers",
        cases=[case(sizes={"B": 2, "S": 3, "H": 5, "d": 7})],
        checks=[{"name": "allocation", "options": {"budgets": [{"metric": "explicit", "at_most": "0"}]}}],
    )  # fmt: skip
    assert failed(folded(task)) == set()


def test_a_copy_of_another_input_does_not_count() -> None:
    def task(of: str) -> Task:
        return tiny(
            "def reference(x, y):\n    return x + y.clone()", inputs={"x": {"shape": "B"}, "y": {"shape": "B"}},
            returns="B", values="integers",
            checks=[{"name": "allocation", "options": {"budgets": [{"metric": "explicit", "of": [of], "at_most": "0"}]}}],
        )  # fmt: skip

    assert failed(folded(task("x"))) == set()
    assert failed(folded(task("y"))) == {"allocation"}


def test_allowed_inputs_may_be_written_to() -> None:
    text = "def reference(x, y):\n    y.copy_(x)\n    return y * 1"
    inputs = {"x": {"shape": "B"}, "y": {"shape": "B"}}
    assert failed(folded(tiny(text, inputs=inputs, returns="B"))) == {"mutation"}
    allowed = [{"name": "mutation", "options": {"allow": ["y"]}}]
    assert failed(folded(tiny(text, inputs=inputs, returns="B", checks=allowed))) == set()


def test_a_subclass_of_the_promised_exception_passes() -> None:
    text = """
    class Odd(ValueError):
        pass


    def reference(x):
        if x.shape[-1] % 2:
            raise Odd("odd")
        return x
    """
    task = tiny(text, cases=[case(sizes={"B": 2, "S": 3, "D": 4})], checks=[{"name": "raises"}],
                errors=[{"name": "odd", "inputs": {"x": {"shape": "2 3 5"}}}])  # fmt: skip
    assert failed(folded(task)) == set()


def test_a_list_or_a_namedtuple_is_a_tuple() -> None:
    text = """
    import collections
    Pair = collections.namedtuple("Pair", "a b")


    def reference(x):
        return x, x + 1


    def right_list(x):
        return [x, x + 1]


    def right_named(x):
        return Pair(x, x + 1)
    """
    task = tiny(text, returns=["B S D", "B S D"])
    for version in ("right_list", "right_named"):
        assert failed(folded(task, version)) == set()


def test_a_missing_gradient_is_zero_where_zero_is_right() -> None:
    text = """
    def reference(x, y):
        return x * 2 + y * 0


    def right_without(x, y):
        return x * 2
    """
    task = tiny(text, inputs={"x": {"shape": "B"}, "y": {"shape": "B"}}, returns="B", numbers="real", values="normal",
                checks=[{"name": "gradient"}])  # fmt: skip
    prepared = folded(task, "right_without")
    assert failed(prepared) == set()


# Folding


def test_a_check_that_waits_says_for_the_root() -> None:
    task = tiny(SWAP + "\n\n\ndef wrong_same(x):\n    return x\n", returns="B D S",
                checks=[{"name": "gradient"}, {"name": "strides"}])  # fmt: skip
    folds = folded(task, "wrong_same")
    assert failed(folds) == {"shape"}
    assert {n: f.waits_for for n, f in folds.items() if f.status is Status.SKIPPED} == dict.fromkeys(
        ["finite", "values", "strides", "gradient"], "shape"
    )


def test_a_run_that_ended_early_passes_nothing() -> None:
    task = tiny(SWAP, returns="B D S")
    looked = list(seen(task))
    folds = fold(task.problem, looked[:2], len(looked))
    assert {entry.status for entry in folds} == {Status.SKIPPED}
    assert folds[0].reason == "the run ended before this check was done"
    assert folds[1].reason == "waits for returns"


def test_checks_are_in_the_order_in_which_they_are_shown() -> None:
    task = tiny(SWAP, checks=[{"name": "raises"}, {"name": "strides"}])
    assert checks_of(task.problem) == [
        "returns", "shape", "dtype", "device", "finite", "values", "strides", "mutation", "determinism", "raises",
    ]  # fmt: skip


# The registry


def test_two_checks_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="there are two checks called shape"):
        check("shape")(lambda view: None)


def test_a_check_may_be_added_for_a_while() -> None:
    entry = Registered("never", lambda view: True, lambda view: Finding("never", "never"))
    with registered("never", entry):
        assert CHECKS["never"] is entry
    assert "never" not in CHECKS


def test_results_of_every_kind_are_described() -> None:
    from grader.checks.returns import describe
    from grader.observe import ForeignFacts, ItemsFacts, MembersFacts, ScalarFacts

    tensor = TensorFacts((2, 3), (3, 1), "float32", "cpu", data=torch.zeros(2, 3))
    assert describe(tensor) == "a tensor of shape (2, 3)"
    assert describe(ScalarFacts("int", 3)) == "int 3"
    assert describe(ScalarFacts("NoneType", None)) == "None"
    assert describe(ItemsFacts("list", (tensor, tensor))) == "a list of 2"
    assert describe(MembersFacts({"k": tensor, "v": tensor})) == "a dict with k, v"
    assert describe(MembersFacts({})) == "a dict with nothing"
    assert describe(ForeignFacts("numpy.ndarray")) == "numpy.ndarray"


def test_phases_of_a_plan_are_those_that_checks_know() -> None:
    assert {trial.phase for trial in plan(Planner(tiny(SWAP).problem, "1"))} <= set(Phase)
