"""Which trials a grade runs, in which order and precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from grader.inputs import Phase, Planner, Trial, Twin
from grader.plan import float_inputs, has_floats, lower_precision, plan, redraw, with_cotangents
from tests.tiny import case, tiny

REFERENCE = "def reference(x):\n    return x * 1"


def planned(**fields: Any) -> list[Trial]:
    return plan(Planner(tiny(REFERENCE, **fields).problem, "1"))


def use(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "options": options}


def brief(trials: list[Trial]) -> list[tuple[str, str]]:
    return [(str(t.phase), t.dtype) for t in trials]


def test_exact_problems_run_exactly_in_every_precision() -> None:
    trials = planned()
    assert brief(trials[:4]) == [("exact", name) for name in ("float64", "float32", "bfloat16", "float16")]


def test_real_problems_run_for_logic_then_for_hygiene() -> None:
    trials = planned(numbers="real", values="normal")
    assert brief(trials[:4]) == [
        ("logic", "float64"), ("hygiene", "float32"), ("hygiene", "bfloat16"), ("hygiene", "float16"),
    ]  # fmt: skip


def test_a_problem_or_a_case_may_restrict_its_precisions() -> None:
    cases = [case("one"), case("two", dtypes=["float32"])]
    trials = planned(numbers="real", dtypes=["float64", "float32"], cases=cases)
    plain = [t for t in trials if "/plain" in t.key and t.twin is None]
    assert [(t.case, t.dtype) for t in plain] == [("one", "float64"), ("one", "float32"), ("two", "float32")]


def test_without_floating_inputs_there_is_one_exact_run() -> None:
    inputs = {"keep": {"shape": "B S", "dtype": "bool"}, "n": 3}
    trials = planned(inputs=inputs, numbers="real")
    assert brief([t for t in trials if t.key.endswith("plain") and t.twin is None]) == [("exact", "float32")]


def test_the_first_trial_is_run_again_and_then_on_fresh_numbers() -> None:
    trials = planned()
    again, fresh = trials[4], trials[5]
    assert again.twin == Twin("same", 0)
    assert torch.equal(again.buffers[0], trials[0].buffers[0])
    assert fresh.twin is None
    assert fresh.sizes == trials[0].sizes
    assert not torch.equal(fresh.buffers[0], trials[0].buffers[0])


def test_the_repeat_is_of_a_trial_that_determinism_looks_at() -> None:
    trials = planned(cases=[case("one", skip=["determinism"]), case("two")], dtypes=["float32"])
    assert [t.twin for t in trials if t.twin is not None] == [Twin("same", 1)]


def test_without_tensors_the_call_is_just_repeated() -> None:
    trials = planned(inputs={"n": "B"}, returns="")
    assert [t.twin for t in trials][:2] == [None, Twin("same", 0)]


# Causality

CAUSAL = {"numbers": "real", "values": "normal", "checks": [use("causality", inputs={"x": 1}, axis=1)]}


def test_a_causal_pair_differs_from_the_cut_on_only() -> None:
    trials = planned(**CAUSAL)
    index = next(i for i, t in enumerate(trials) if t.twin is not None and t.twin.relation == "past")
    base, changed = trials[index - 1], trials[index]
    assert changed.twin == Twin("past", index - 1, 2)
    one, two = (t.argument("x").of(t.buffers) for t in (base, changed))
    assert torch.equal(one[:, :2], two[:, :2])
    assert bool((one[:, 2:] != two[:, 2:]).all())
    assert base.dtype == "float64"


def test_unequal_lengths_are_cut_so_that_the_ends_meet() -> None:
    trials = planned(
        inputs={"q": {"shape": "B Sq D"}, "k": {"shape": "B Sk D"}},
        cases=[case(sizes={"B": 2, "Sq": 3, "Sk": 7, "D": 2})],
        numbers="real", values="normal", checks=[use("causality", inputs={"q": 1, "k": 1}, axis=1)],
    )  # fmt: skip
    changed = next(t for t in trials if t.twin is not None and t.twin.relation == "past")
    base = trials[changed.twin.index]  # type: ignore[union-attr]
    assert changed.twin is not None
    assert changed.twin.cut == 1
    for name, first in (("q", 1), ("k", 5)):
        one, two = (t.argument(name).of(t.buffers) for t in (base, changed))
        differs = (one != two).all(-1).all(0)
        assert differs.tolist() == [i >= first for i in range(len(differs))]


def test_one_position_has_no_past() -> None:
    trials = planned(**CAUSAL | {"cases": [case(sizes={"B": 2, "S": 1, "D": 3})]})
    assert not [t for t in trials if t.twin is not None and t.twin.relation == "past"]


# Traced, gradients, errors


def test_one_trial_is_traced_for_the_reader_where_no_check_needs_it() -> None:
    assert [t.case for t in planned(cases=[case("one"), case("two")]) if t.traced] == ["one"]


def test_every_case_is_traced_where_a_check_needs_it() -> None:
    cases = [case("one"), case("two", skip=["allocation"]), case("three")]
    trials = planned(cases=cases, checks=[use("allocation", budgets=[{"metric": "new", "at_most": "B"}])])
    assert [(t.case, t.dtype) for t in trials if t.traced] == [("one", "float32"), ("three", "float32")]


def test_all_but_traced_calls_are_profiled_where_library_calls_are_refused() -> None:
    trials = planned(numbers="real", checks=[use("forbidden", families=["softmax"]), use("gradient")])
    assert all(t.profiled is not t.traced for t in trials)
    assert not any(t.profiled for t in planned())


def test_allocation_alone_profiles_the_ordinary_calls() -> None:
    allocation = use("allocation", budgets=[{"metric": "new", "at_most": "B"}])
    trials = planned(numbers="real", checks=[allocation, use("gradient")])
    assert any(t.profiled for t in trials)
    assert all(t.profiled is not bool(t.traced or t.gradient_of) for t in trials)


def test_gradients_run_for_logic_on_every_case_and_in_lower_precision_on_one() -> None:
    cases = [case("a"), case("b", gradients=False), case("c"), case("d", skip=["gradient"]), case("e")]
    trials = [t for t in planned(numbers="real", cases=cases, checks=[use("gradient")]) if t.gradient_of]
    assert [t.case for t in trials if t.phase is Phase.LOGIC] == ["a", "c", "e"]
    lower = [(t.case, t.dtype) for t in trials if t.phase is Phase.HYGIENE]
    assert lower == [("a", dtype) for dtype in ("float32", "bfloat16", "float16")]


def test_gradients_are_of_every_floating_tensor_unless_named() -> None:
    inputs = {"x": {"shape": "B"}, "m": {"shape": "B", "dtype": "bool"}, "parts": {"list": [{"shape": "B"}]}}
    problem = tiny(REFERENCE, inputs=inputs).problem
    assert float_inputs(problem) == ["x", "parts"]
    assert has_floats(problem)
    trials = planned(inputs=inputs, checks=[use("gradient", of=["x"])])
    assert {t.gradient_of for t in trials} == {(), ("x",)}


def test_errors_come_last() -> None:
    errors = [{"name": "odd", "inputs": {"x": {"shape": "3"}}}]
    trials = planned(errors=errors, checks=[use("raises"), use("gradient")])
    assert [t.raises for t in trials].index("ValueError") == len(trials) - 1


def test_a_redraw_is_the_same_call_on_other_numbers() -> None:
    planner = Planner(tiny(REFERENCE, numbers="real", values="normal", checks=[use("gradient")]).problem, "1")
    for trial in plan(planner):
        if trial.traced or trial.twin:
            continue
        drawn = [redraw(planner, trial, n) for n in range(2)]
        assert all(
            (d.case, d.phase, d.dtype, d.gradient_of)
            == (trial.case, trial.phase, trial.dtype, trial.gradient_of)
            for d in drawn
        )
        assert len({float(t.buffers[0].sum()) for t in (trial, *drawn)}) == 3


def test_lower_precisions() -> None:
    assert lower_precision(tiny(REFERENCE).problem) == ["float32", "bfloat16", "float16"]
    assert lower_precision(tiny(REFERENCE, dtypes=["float64", "float16"]).problem) == ["float16"]


def test_cotangents_are_random_and_zero_where_the_result_is_not_finite() -> None:
    task = tiny(
        "def reference(x):\n    return x.masked_fill(x < 0, float('-inf')), x > 0",
        numbers="real",
        values="normal",
    )
    made = Planner(task.problem, "1")
    trial = made.trial(task.problem.cases[0], Phase.LOGIC, "float64", "gradient")
    expected = task.versions.observe("reference", trial)
    first, second = with_cotangents(trial, expected, "1").cotangents
    assert first is not None
    assert second is None, "a bool result has no gradient"
    hidden = expected.leaves()[0].data.isinf()  # type: ignore[union-attr]
    assert bool((first[hidden] == 0).all())
    assert bool((first[~hidden] != 0).all())
    again = with_cotangents(trial, expected, "1").cotangents[0]
    other = with_cotangents(replace(trial, key="other"), expected, "1").cotangents[0]
    assert again is not None
    assert other is not None
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
