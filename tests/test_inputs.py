"""From cases to concrete calls: seeded, laid out as asked, and silent about seed, phase and answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from grader.errors import GraderError
from grader.guest.harness import to_bytes
from grader.inputs import Phase, Planner, Trial, generator_for
from tests.tiny import PLAIN, case, tiny

REFERENCE = "def reference(x):\n    return x"


def planner(seed: str = "1", **fields: Any) -> Planner:
    return Planner(tiny(REFERENCE, **fields).problem, seed)


def trial(phase: Phase = Phase.EXACT, dtype: str = "float32", key: str = "plain", **fields: Any) -> Trial:
    made = planner(**fields)
    return made.trial(made.problem.cases[0], phase, dtype, key)


def test_the_argument_is_a_view_of_its_buffer() -> None:
    made = trial(cases=[case(layouts={"x": "fused"})])
    (argument,) = made.arguments
    assert (argument.name, argument.dtype, argument.buffer) == ("x", "float32", 0)
    assert argument.view.stride == (45, 9, 1)
    (buffer,) = made.buffers
    assert buffer.numel() == 90
    x = argument.of(made.buffers)
    assert torch.equal(x.flatten() - x.flatten()[0], torch.arange(30.0))


def test_what_surrounds_a_view_is_noise() -> None:
    made = trial(cases=[case(layouts={"x": "fused"})])
    outside = made.buffers[0].view(2, 5, 3, 3)[:, :, [0, 2]]
    assert float(outside.std()) > 10
    assert not bool((outside == 0).any())


def test_values_are_rounded_to_the_run_s_precision_once() -> None:
    made = trial(dtype="bfloat16", phase=Phase.HYGIENE, numbers="real", values="normal")
    assert made.buffers[0].dtype == torch.bfloat16
    wide = made.in_precision("float64")
    assert wide.buffers[0].dtype == torch.float64
    assert torch.equal(wide.buffers[0], made.buffers[0].double())
    assert wide.tree == made.tree


def test_whole_number_and_bool_inputs_keep_their_dtype_in_every_precision() -> None:
    inputs = {
        "x": {"shape": "B S D"},
        "keep": {"shape": "B S", "dtype": "bool"},
        "at": {"shape": "B", "dtype": "int64"},
    }
    made = trial(dtype="float16", inputs=inputs)
    assert [b.dtype for b in made.buffers] == [torch.float16, torch.bool, torch.int64]
    assert [b.dtype for b in made.in_precision("float64").buffers] == [torch.float64, torch.bool, torch.int64]


def test_expressions_lists_dicts_and_literals() -> None:
    inputs = {
        "heads": "S*D", "flag": True, "nothing": None, "ratio": 0.5,
        "some": {"list": [{"shape": "B"}, "D"]}, "named": {"dict": {"k": {"shape": "S"}}},
    }  # fmt: skip
    made = trial(inputs=inputs)
    assert made.tree["heads"] == {"k": "v", "v": 15}
    assert [made.tree[name]["v"] for name in ("flag", "nothing", "ratio")] == [True, None, 0.5]
    assert [item["k"] for item in made.tree["some"]["i"]] == ["t", "v"]
    assert made.tree["named"]["i"]["k"]["s"] == (5,)
    assert [a.name for a in made.arguments] == ["some", "named"]


def test_a_case_may_change_inputs_values_and_layouts_and_leave_arguments_out() -> None:
    inputs = {"x": {"shape": "B S D"}, "scale": 2, "causal": True}
    changed = case(inputs={"scale": 3, "causal": "omit"}, values={"x": "hostile"}, layouts={"x": "strided"})
    made = trial(inputs=inputs, cases=[changed])
    assert list(made.tree) == ["x", "scale"]
    assert made.tree["scale"]["v"] == 3
    assert made.steps[0]["args"] == ["x", "scale"]
    x = made.argument("x").of(made.buffers)
    assert bool((x % 64 == 0).all())
    assert made.argument("x").view.stride[-1] == 2


def test_a_library_module_gets_drawn_weights() -> None:
    inputs = {"mha": {"torch_mha": {"embed_dim": "H*d", "num_heads": "H", "bias": True}}}
    made = trial(inputs=inputs, cases=[case(sizes={"H": 3, "d": 4})])
    spec = made.tree["mha"]
    assert spec["config"] == {"embed_dim": 12, "num_heads": 3, "bias": True}
    assert set(spec["state"]) == {"in_proj_weight", "out_proj.weight", "in_proj_bias", "out_proj.bias"}
    assert all(float(made.buffers[s["b"]].abs().max()) > 0 for s in spec["state"].values())


# The seed


def test_the_seed_decides_sizes_and_numbers() -> None:
    drawn = [case(sizes={"B": "2..9", "S": "2..9", "D": "2..9"})]
    one, same, other = (planner(seed, cases=drawn) for seed in ("a", "a", "b"))
    trials = [p.trial(p.problem.cases[0], Phase.EXACT, "float32", "plain") for p in (one, same, other)]
    assert trials[0].sizes == trials[1].sizes
    assert torch.equal(trials[0].buffers[0], trials[1].buffers[0])
    assert trials[0].sizes != trials[2].sizes


def test_each_trial_has_numbers_of_its_own() -> None:
    made = planner(numbers="real", values="normal")
    (only,) = made.problem.cases
    firsts = {
        float(made.trial(only, phase, dtype, key).buffers[0].flatten()[0])
        for phase, dtype, key in [
            (Phase.LOGIC, "float64", "plain"), (Phase.LOGIC, "float64", "fresh"),
            (Phase.HYGIENE, "float32", "plain"), (Phase.HYGIENE, "float32", "gradient"),
        ]
    }  # fmt: skip
    assert len(firsts) == 4


def test_a_generator_for_each_seed_and_key() -> None:
    draws = {(s, k): float(torch.rand(1, generator=generator_for(s, k))) for s in "ab" for k in "cd"}
    assert len(set(draws.values())) == 4
    assert draws["a", "c"] == float(torch.rand(1, generator=generator_for("a", "c")))


# The request


def everything(value: Any) -> str:
    return json.dumps(value, default=str)


def test_a_request_holds_no_seed_phase_case_or_size_name() -> None:
    made = planner("a-secret-seed", numbers="real", values="normal", cases=[case("a telling name")])
    one = made.trial(made.problem.cases[0], Phase.HYGIENE, "float32", "plain", ["x"])
    text = everything(one.request(1 << 20).header)
    for word in ("secret", "telling", "hygiene", "tolerance", "plain", "tiny", "visible", '"B"'):
        assert word not in text
    assert set(one.request(1 << 20).header) == {
        "dtype", "device", "max_bytes", "args", "steps", "trace", "profile", "gradient", "buffers",
    }  # fmt: skip


def test_a_request_carries_the_bytes_of_every_buffer_and_cotangent() -> None:
    from dataclasses import replace

    made = trial(numbers="real", values="normal")
    cotangent = torch.ones(2, 5, 3)
    graded = replace(made, gradient_of=("x",), cotangents=(None, cotangent))
    request = graded.request(100)
    assert request.header["gradient"] == {
        "of": ("x",),
        "parameters": False,
        "cotangents": [(None, []), (1, [2, 5, 3])],
    }
    assert request.header["buffers"] == [{"dtype": "float32", "numel": 30}, {"dtype": "float32", "numel": 30}]
    assert [bytes(b) for b in request.buffers] == [
        bytes(to_bytes(made.buffers[0])),
        bytes(to_bytes(cotangent)),
    ]
    assert json.loads(json.dumps(request.header))["max_bytes"] == 100


def test_gradients_are_asked_of_floating_inputs_only() -> None:
    made = planner(inputs={"x": {"shape": "B"}, "at": {"shape": "B", "dtype": "int64"}})
    one = made.trial(made.problem.cases[0], Phase.LOGIC, "float64", "gradient", ["x", "at"])
    assert [one.tree[name]["g"] for name in ("x", "at")] == [True, False]


# Steps


def test_steps_drop_what_a_case_leaves_out() -> None:
    steps = [
        {"do": "new", "args": ["width"]},
        {"do": "method", "args": ["x", "causal"], "observe": True, "save": "first"},
        {"do": "method", "name": "again", "args": ["first"], "observe": True},
    ]
    inputs = {"width": "D", "x": {"shape": "B S D"}, "causal": True}
    made = trial(
        inputs=inputs, steps=steps, kind="class", entry="Answer", cases=[case(inputs={"causal": "omit"})]
    )
    assert [(s["do"], s["name"], s["args"]) for s in made.steps] == [
        ("new", "Answer", ["width"]), ("method", "forward", ["x"]), ("method", "again", ["first"]),
    ]  # fmt: skip


def test_an_error_case_is_looked_at_by_raises_alone() -> None:
    made = planner(
        errors=[{"name": "odd", "inputs": {"x": {"shape": "2 3"}}, "unchanged": ["x"]}],
        checks=[{"name": "raises"}],
    )
    bad = made.trial(made.problem.errors[0], Phase.ERROR, "float32", "bad")
    assert (bad.raises, bad.unchanged, bad.visible) == ("ValueError", ("x",), False)
    assert bad.looks_at("raises")
    assert not bad.looks_at("values")


@pytest.mark.parametrize(
    ("fields", "looks"),
    [({}, True), ({"skip": ["values"]}, False), ({"only": ["values"]}, True), ({"only": ["shape"]}, False)],
)
def test_only_and_skip(fields: dict[str, Any], looks: bool) -> None:
    assert trial(cases=[case(**fields)]).looks_at("values") is looks


def test_inputs_that_cannot_be_made_are_the_problem_s_fault() -> None:
    inputs = {"x": {"shape": "B S D", "options": {"axis": 9}, "values": "per-head"}}
    with pytest.raises(GraderError) as caught:
        trial(inputs=inputs, cases=[PLAIN])
    assert caught.value.what == "the inputs of case `plain` cannot be made"
    assert (caught.value.where, caught.value.next_step) == ("tiny", "mhaquiz lint tiny")
    assert "index out of range" in caught.value.cause


def test_arguments_are_found_by_name_and_by_buffer() -> None:
    made = trial(inputs={"x": {"shape": "B S D"}, "y": {"shape": "B S D"}})
    assert made.named(1) == "y"
    assert made.named(None) is None
    assert made.named(7) is None
    with pytest.raises(KeyError):
        made.argument("z")
