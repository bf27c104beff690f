"""The script of a failed check runs on its own and shows the failure again."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.inputs import Phase, Planner
from grader.judge import Task
from grader.report import Status
from grader.snippet import snippet
from tests.conftest import Judge
from tests.tiny import case, code, tiny


def ran(script: str, source: str, monkeypatch: pytest.MonkeyPatch, module: str = "answer") -> dict[str, Any]:
    """The names that a script leaves, with the submission importable under its name."""
    made = types.ModuleType(module)
    exec(source, made.__dict__)
    monkeypatch.setitem(sys.modules, module, made)
    names: dict[str, Any] = {}
    exec(script, names)
    return names


def failed_snippet(task: Task, source: str, judge: Judge) -> str:
    script = next(c.snippet for c in judge(task, source).checks if c.status is Status.FAILED)
    assert script is not None
    return script


SWAP = tiny("def reference(x):\n    return x.transpose(1, 2)", returns="B D S")
WRONG = code("def answer(x):\n    return x.transpose(1, 2) + 1")


def test_it_is_a_file_beside_the_submission_that_runs(judge: Judge, tmp_path: Path) -> None:
    script = failed_snippet(SWAP, WRONG, judge)
    assert script.startswith("import torch\nfrom answer import answer  # your file\n\nx = torch.tensor([[[")
    (tmp_path / "answer.py").write_text(WRONG)
    (tmp_path / "again.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "again.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tensor([[[")


def test_it_shows_the_failure_again(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ran(failed_snippet(SWAP, WRONG, judge), WRONG, monkeypatch)
    assert torch.equal(names["out"], names["expected"] + 1)
    assert names["x"].dtype == torch.float32


@pytest.mark.parametrize("layout", ["fused", "transposed", "strided", "sliced"])
def test_memory_layouts_are_rebuilt(layout: str, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tiny(
        "def reference(x):\n    return x.transpose(1, 2)",
        returns="B D S",
        cases=[case(layouts={"x": layout})],
    )
    names = ran(failed_snippet(task, WRONG, judge), WRONG, monkeypatch)
    planner = Planner(task.problem, "1")
    argument = planner.trial(task.problem.cases[0], Phase.EXACT, "float32", "plain").argument("x")
    assert names["x"].stride() == argument.view.stride
    assert torch.equal(names["out"], names["expected"] + 1)


def test_infinities_and_nan_are_written_out(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tiny(
        "def reference(x):\n    return x.masked_fill(x > 1, float('nan'))", numbers="real", values="masked"
    )
    source = code("def answer(x):\n    return x")
    names = ran(failed_snippet(task, source, judge), source, monkeypatch)
    assert bool(names["x"].isneginf().any())
    assert bool(names["expected"].isnan().any())


def test_several_results_and_scalars(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {
        "x": {"shape": "B S"},
        "n": "D",
        "parts": {"list": [{"shape": "B"}, 2]},
        "named": {"dict": {"k": 1}},
    }
    task = tiny("def reference(x, n, parts, named):\n    return x, n", inputs=inputs, returns=["B S", ""])
    source = code("def answer(x, n, parts, named):\n    return x, n + 1")
    names = ran(failed_snippet(task, source, judge), source, monkeypatch)
    assert names["expected"][1] == 3
    assert names["out"][1] == 4
    assert len(names["parts"]) == 2
    assert names["named"] == {"k": 1}


MODULE = """
class reference(torch.nn.Module):
    def __init__(self, width, mha):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.scale

    def twice(self, x):
        return x * self.scale * 2
"""
STEPS = [
    {"do": "new", "args": ["width", "mha"]},
    {"do": "to"},
    {"do": "eval"},
    {"do": "parameters", "observe": True},
    {"do": "method", "args": ["x"], "observe": True, "save": "first"},
    {"do": "method", "name": "twice", "args": ["first"], "observe": True},
]


def test_a_class_is_built_and_called_step_by_step(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {
        "width": "D", "x": {"shape": "B S D"},
        "mha": {"torch_mha": {"embed_dim": "D", "num_heads": 1, "batch_first": True}},
    }  # fmt: skip
    task = tiny(
        MODULE, entry="Answer", kind="class", inputs=inputs, steps=STEPS, returns=["", "B S D", "B S D"]
    )
    source = MODULE.replace("class reference", "import torch\n\n\nclass Answer").replace("* 2", "* 3")
    names = ran(failed_snippet(task, source, judge), source, monkeypatch)
    assert isinstance(names["mha"], torch.nn.MultiheadAttention)
    assert (names["out"], names["expected"]) == (3, 3)
    assert torch.equal(names["first"], names["expected2"])
    assert torch.equal(names["out3"] * 2, names["expected3"] * 3)


def test_bad_input_names_the_promised_exception(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = "def reference(x):\n    if x.shape[-1] % 2:\n        raise ValueError('odd')\n    return x"
    task = tiny(
        guarded, cases=[case(sizes={"B": 2, "S": 5, "D": 4})], checks=[{"name": "raises"}],
        errors=[{"name": "odd", "inputs": {"x": {"shape": "2 5 3"}}}],
    )  # fmt: skip
    source = code("def answer(x):\n    return x")
    script = failed_snippet(task, source, judge)
    assert script.endswith("out = answer(x)\n# expected: ValueError\n")
    assert ran(script, source, monkeypatch)["out"].shape == (2, 5, 3)


def test_gradients_are_asked_for(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tiny(
        "def reference(x):\n    return x * x", numbers="real", values="normal", checks=[{"name": "gradient"}]
    )
    source = code("def answer(x):\n    return x.detach() ** 2")
    names = ran(failed_snippet(task, source, judge), source, monkeypatch)
    assert names["x"].requires_grad
    assert not names["out"].requires_grad


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("a/b/my_answer.py", "my_answer"),
        ("C:\\x\\one.py", "one"),
        ("my-answer.py", "submission"),
        ("<stdin>", "submission"),
    ],
)
def test_the_module_is_the_file(file: str, module: str) -> None:
    planner = Planner(SWAP.problem, "1")
    trial = planner.trial(SWAP.problem.cases[0], Phase.EXACT, "float32", "plain")
    text = snippet(trial, None, file)
    assert text is not None
    assert f"from {module} import answer  # your file\n" in text


def test_large_inputs_are_not_printed() -> None:
    task = tiny("def reference(x):\n    return x", cases=[case(sizes={"B": 9, "S": 9, "D": 9})])
    trial = Planner(task.problem, "1").trial(task.problem.cases[0], Phase.EXACT, "float32", "plain")
    assert snippet(trial, None, "answer.py") is None
