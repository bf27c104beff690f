"""Every finding of every check has a submission that is right but for it: that check fails, and only it.

Each runs through the real engine. A check that waits for another is never counted against the submission.
"""

# ruff: noqa: E501 - a message is one line

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from grader.judge import Task
from grader.report import Status, Verdict
from grader.wording import codes
from tests.conftest import Judge
from tests.tiny import case, code, tiny


@dataclass(frozen=True)
class Fixture:
    """A submission, the one finding it earns and the words of it."""

    check: str
    code: str
    task: Task
    source: str
    message: str
    case: str = "plain"
    line: int | None = None

    @property
    def id(self) -> str:
        return f"{self.check}-{self.code}"


SWAP_TEXT = "def reference(x):\n    return x.transpose(1, 2)\n"
SWAP: dict[str, Any] = {"returns": "B D S"}


def swap(*checks: Any, **fields: Any) -> Task:
    """Exact: two axes swapped, a view."""
    return tiny(SWAP_TEXT, **SWAP, checks=list(checks), **fields)


def real(solution: str, *checks: Any, **fields: Any) -> Task:
    """Real numbers of the same shape."""
    named = [{"name": c} if isinstance(c, str) else c for c in checks]
    return tiny(solution, numbers="real", values="normal", checks=named, **fields)


def used(name: str, **options: Any) -> dict[str, Any]:
    """A check with options."""
    return {"name": name, "options": options}


DOUBLE = "def reference(x):\n    return x * 2\n"
SQUARE = "def reference(x):\n    return x * x\n"
SOFTMAX = """
def reference(x):
    weights = (x - x.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)
"""
PAIR_TEXT = "def reference(x):\n    return x.chunk(2, -1)\n"
PAIR: dict[str, Any] = {
    "inputs": {"x": {"shape": "B S (2 D)"}}, "returns": ["B S D", "B S D"]
}  # fmt: skip
STRIDED_TEXT = "def reference(x):\n    return x.as_strided(x.shape, x.stride(), x.storage_offset())\n"
LARGE = case(sizes={"B": 4, "S": 32, "D": 64})


def budget(metric: str, at_most: str, **more: Any) -> dict[str, Any]:
    return used("allocation", budgets=[{"metric": metric, "at_most": at_most, **more}])


# What ends a run, and what is then said of it. Used for ordinary calls and for bad input.
STOPS = {
    "time_limit": ("while True:\n        pass", "it took more than 1 s"),
    "memory_limit": (
        "import time\n    kept = b'x' * (200 << 20)\n    time.sleep(5)",
        "it took more than 64 MiB of memory",
    ),
    "process_limit": (
        "import os, time\n    for _ in range(80):\n        if os.fork() == 0:\n            time.sleep(5)\n"
        "            os._exit(0)\n    time.sleep(5)",
        "it started more than 64 processes",
    ),
    "output_limit": ("print('x' * (9 << 20))", "it printed more than 8 MiB"),
    "killed": ("import os\n    os._exit(0)", "its process ended itself with status 0"),
    "refused": (
        "import os\n    for number in range(3, 64):\n        try:\n            os.write(number, b'\\xff' * 64)\n"
        "        except OSError:\n            pass",
        "a frame's header is too large",
    ),
}
SAYS = {
    "time_limit": "the run was stopped at the time limit",
    "memory_limit": "the run was stopped at the memory limit",
    "process_limit": "the run was stopped at the process limit",
    "output_limit": "the run was stopped at the output limit",
    "killed": "the run ended before your code returned",
    "refused": "the run's answers could not be read",
}
LIMITS = {
    "time_limit": {"seconds": 1},
    "memory_limit": {"memory_mb": 64},
    "process_limit": {"memory_mb": 8192},
}


def stopped(kind: str) -> Fixture:
    body, detail = STOPS[kind]
    task = swap(limits=LIMITS.get(kind, {}))
    return Fixture("returns", kind, task, code(f"def answer(x):\n    {body}\n"), f"{SAYS[kind]}: {detail}")


GUARDED_TEXT = """
def reference(x):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    return x.transpose(1, 2)
"""
ODD = {"name": "an odd D", "visible": True, "inputs": {"x": {"shape": "2 5 3"}}}
EVEN = case(sizes={"B": 2, "S": 5, "D": 4})


def guarded(**odd: Any) -> Task:
    """Exact: odd sizes are refused."""
    fields = {"limits": odd.pop("limits", {})}
    return tiny(
        GUARDED_TEXT, **SWAP, cases=[EVEN], errors=[{**ODD, **odd}], checks=[used("raises")], **fields
    )


def badly(body: str, kind: str, message: str, line: int | None = None, **odd: Any) -> Fixture:
    """A submission that is right but for bad input."""
    text = f"def answer(x):\n    if x.shape[-1] % 2 == 0:\n        return x.transpose(1, 2)\n    {body}\n"
    return Fixture("raises", kind, guarded(**odd), code(text), message, "an odd D", line)


def stopped_on_bad_input(kind: str) -> Fixture:
    ended = kind.replace("_", " ")
    message = f"bad input (an odd D) ended the run ({ended}), expected ValueError"
    return badly(STOPS[kind][0], kind, message, limits=LIMITS.get(kind, {}))


MODULE_TEXT = """
class reference(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.scale
"""
MODULE: dict[str, Any] = {
    "entry": "Answer", "kind": "class", "inputs": {"width": "D", "x": {"shape": "B S D"}},
    "steps": [
        {"do": "new", "args": ["width"]}, {"do": "to"},
        {"do": "method", "args": ["x"], "observe": True},
    ],
}  # fmt: skip


def module(body: str, kind: str, message: str) -> Fixture:
    """A module whose parameters' gradients are judged."""
    task = real(MODULE_TEXT, used("gradient", of=["x"], parameters=True), **MODULE)
    text = f"class Answer(torch.nn.Module):\n{body}"
    return Fixture("gradient", kind, task, code(text), message)


TRACED_ONLY = """
def answer(x):
    if torch.overrides._get_current_function_mode_stack():
        raise RuntimeError("not while traced")
    return x.clone().transpose(1, 2)
"""

FIXTURES = [
    *map(stopped, STOPS),
    Fixture(
        "returns", "raised", swap(), code("def answer(x):\n    return x.nothing"),
        "your code raised AttributeError: 'Tensor' object has no attribute 'nothing'", line=5,
    ),
    Fixture(
        "returns", "type", swap(), code("def answer(x):\n    x.transpose(1, 2)"),
        "your code returned None, expected a tensor",
    ),
    Fixture(
        "returns", "stacked", tiny(PAIR_TEXT, **PAIR), code("def answer(x):\n    return torch.stack(x.chunk(2, -1))"),
        "your code returned a tensor of shape (2, 2, 5, 3), expected a tuple of 2",
    ),
    Fixture(
        "returns", "flagged", swap(), code("def answer(x):\n    return torch._neg_view(-x).transpose(1, 2)"),
        "your code returned a lazily negated tensor, expected a plain tensor",
    ),
    Fixture(
        "returns", "unreadable", swap(), code("def answer(x):\n    return x.transpose(1, 2).to_sparse()"),
        "your code returned a tensor that cannot be read (its layout is sparse_coo on cpu, its dtype float32), expected a dense tensor",
    ),
    Fixture(
        "shape", "shape", swap(), code("def answer(x):\n    return x"),
        "the result has shape (2, 5, 3), expected (2, 3, 5) (B, D, S)",
    ),
    Fixture(
        "dtype", "dtype", swap(), code("def answer(x):\n    return x.double().transpose(1, 2)"),
        "the result is float64, expected float32",
    ),
    Fixture(
        "finite", "nan", real(DOUBLE), code("def answer(x):\n    return (x * 2).masked_fill(x == x.amax(), float('nan'))"),
        "1 of 30 elements are NaN in float64; the first is out[0, 2, 0], expected 3.80686",
    ),
    Fixture(
        "finite", "infinite", real(DOUBLE),
        code("def answer(x):\n    return (x * 2).masked_fill(x == x.amax(), float('inf'))"),
        "1 of 30 elements are infinite in float64; the first is out[0, 2, 0], expected 3.80686",
    ),
    Fixture(
        "values", "value", swap(), code("def answer(x):\n    return x.transpose(1, 2) + 1"),
        "30 of 30 elements are wrong; out[0, 0, 0] is 655, expected 654",
    ),
    Fixture(
        "values", "nonfinite", real("def reference(x):\n    return x.masked_fill(x < 0, float('-inf'))"),
        code("def answer(x):\n    return x.masked_fill(x < 0, -1e4)"),
        "15 of 30 elements are infinite or NaN in the wrong place; out[0, 0, 0] is -10000, expected -inf",
    ),
    Fixture(
        "values", "number", tiny("def reference(x):\n    return x.numel()", returns=""),
        code("def answer(x):\n    return x.numel() + 1"),
        "the result is 31, expected 30",
    ),
    Fixture(
        "strides", "strides", swap(used("strides")), code("def answer(x):\n    return x.transpose(1, 2).contiguous()"),
        "the result has strides (15, 5, 1), expected (15, 1, 3) (differs on D, S)", line=5,
    ),
    Fixture(
        "no_copy", "copied", swap(used("no_copy", of="x")), code("def answer(x):\n    return x.clone().transpose(1, 2)"),
        "the result does not share memory with x", line=5,
    ),
    Fixture(
        "no_copy", "false_claim",
        swap(used("no_copy", of="x"), cases=[case(skip=["values", "mutation"])]),
        code("def answer(x):\n    x += 1\n    return x.transpose(1, 2)"),
        "the result lies in the memory of x, but does not hold what that memory held",
    ),
    Fixture(
        "single_storage", "several", tiny(PAIR_TEXT, **PAIR, checks=[used("single_storage")]),
        code("def answer(x):\n    a, b = x.chunk(2, -1)\n    return a, b.clone()"),
        "the results lie in 2 storages, expected 1", line=6,
    ),
    Fixture(
        "contiguous", "not_contiguous", swap(used("contiguous", of="x")),
        code("def answer(x):\n    return x.clone().transpose(1, 2)"),
        "the result was copied and is still not contiguous: strides (15, 1, 3), expected (15, 5, 1)", line=5,
    ),
    Fixture(
        "allocation", "explicit", swap(budget("explicit", "0")), code("def answer(x):\n    return x.clone().transpose(1, 2)"),
        "your code copies 30 elements, allowed 0 (0); most of it in `clone`", line=5,
    ),
    Fixture(
        "allocation", "held", swap(budget("held", "B*S*D")),
        code("def answer(x):\n    one = x.clone()\n    two = one.clone()\n    return two.transpose(1, 2)"),
        "your code holds copies of 60 elements, allowed 30 (B*S*D); most of it in `clone`", line=6,
    ),
    Fixture(
        "allocation", "new", tiny(DOUBLE, checks=[budget("new", "B*S*D")], cases=[LARGE]),
        code("def answer(x):\n    return x + x * 1"),
        "your code takes new memory for 16384 elements, allowed 8192 (B*S*D); most of it in `mul`", line=5,
    ),
    Fixture(
        "allocation", "largest", tiny(DOUBLE, checks=[budget("largest", "B*S*D")], cases=[LARGE]),
        code("def answer(x):\n    return torch.cat([x, x])[: len(x)] * 2"),
        "the largest single tensor has 16384 elements, allowed 8192 (B*S*D); most of it in `cat`", line=5,
    ),
    Fixture(
        "allocation", "peak", tiny(DOUBLE, checks=[budget("peak", "2*B*S*D")], cases=[LARGE]),
        code("def answer(x):\n    parts = [x * 1 for _ in range(4)]\n    return parts[0] * 2"),
        "at its peak your code holds 40960 elements, allowed 16384 (2*B*S*D); most of it in `mul`", line=5,
    ),
    Fixture(
        "allocation", "untraceable", swap(budget("explicit", "0")), code(TRACED_ONLY),
        "your code cannot be traced, and it copies: aten::clone, aten::copy_",
    ),
    Fixture(
        "forbidden", "library_call", real(SOFTMAX, used("forbidden", families=["softmax"])),
        code("def answer(x):\n    return torch.softmax(x, -1)"),
        "`softmax` does the exercise for you", line=5,
    ),
    Fixture(
        "forbidden", "unwatched", real(SOFTMAX, used("forbidden", families=["softmax"])),
        code(
            "def answer(x):\n    torch.autograd._disable_profiler_legacy()\n"
            "    return (x - x.amax(-1, keepdim=True)).exp() / (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)"
        ),
        "the grader's watch over your call was switched off while it ran",
    ),
    Fixture(
        "required", "other_move", tiny(STRIDED_TEXT, checks=[used("required", only_moves=["as_strided"])]),
        code("def answer(x):\n    y = x.transpose(0, 1)\n    return y.as_strided(x.shape, x.stride(), 0)"),
        "`transpose` moves or re-views data; here only as_strided may", line=5,
    ),
    Fixture(
        "required", "unused", tiny(STRIDED_TEXT, checks=[used("required", only_moves=["as_strided"])]),
        code("def answer(x):\n    return x"),
        "as_strided was never called",
    ),
    Fixture(
        "required", "products",
        tiny(
            "def reference(x, w):\n    return x @ w", inputs={"x": {"shape": "B S D"}, "w": {"shape": "D D"}},
            values="integers", checks=[used("required", most={"matmul": 1})],
        ),
        code("def answer(x, w):\n    first = x @ w\n    return (first + x @ w) // 2"),
        "2 matrix products ran, expected at most 1", line=6,
    ),
    Fixture(
        "mutation", "changed", swap(), code("def answer(x):\n    out = x.transpose(1, 2).clone()\n    x.zero_()\n    return out"),
        "x was changed by the call",
    ),
    Fixture(
        "mutation", "relabelled", swap(), code("def answer(x):\n    out = x.transpose(1, 2)\n    x.transpose_(1, 2)\n    return out"),
        "the axes of x were changed in place",
    ),
    Fixture(
        "mutation", "changed_back", swap(), code("def answer(x):\n    x.neg_().neg_()\n    return x.transpose(1, 2)"),
        "x was written to during the call, even if its values are the same again",
    ),
    Fixture(
        "determinism", "differs", real(DOUBLE),
        code("calls = []\n\n\ndef answer(x):\n    calls.append(1)\n    return x * (2 + 1e-5 * (len(calls) == 1))"),
        "two calls with the same inputs gave different results: out[0, 1, 1] was -4.03337, then -4.03335",
    ),
    Fixture(
        "determinism", "changed_later", swap(),
        code("kept = {}\n\n\ndef answer(x):\n    out = kept.setdefault(x.dtype, torch.empty_like(x))\n    return out.copy_(x).transpose(1, 2)"),
        "a result changed after it had been returned",
    ),
    Fixture(
        "determinism", "threads", swap(),
        code("import threading, time\n\n\ndef answer(x):\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    return x.transpose(1, 2)"),
        "1 thread was still running after the call returned",
    ),
    Fixture(
        "causality", "future_seen",
        real(
            "def reference(x):\n    return x.cumsum(1)",
            used("causality", inputs={"x": 1}, axis=1),
            cases=[case("one token", sizes={"B": 2, "S": 1, "D": 3}), case("five tokens", only=["causality"])],
        ),
        code("def answer(x):\n    return x.flip(1).cumsum(1).flip(1)"),
        "position 0 changed when only positions from 2 on were changed", case="five tokens",
    ),
    Fixture(
        "gradient", "raised", real(SQUARE, "gradient", dtypes=["float64", "float32"]),
        code("def answer(x):\n    return torch.from_numpy(x.numpy() ** 2)"),
        "with gradients required, your code raised RuntimeError: Can't call numpy() on Tensor that requires grad. "
        "Use tensor.detach().numpy() instead.", line=5,
    ),
    Fixture(
        "gradient", "backward_raised", real("def reference(x):\n    return x.sigmoid()", "gradient"),
        code("def answer(x):\n    out = x.sigmoid()\n    return out.mul_(1)"),
        "backward raised RuntimeError: one of the variables needed for gradient computation has been modified by an "
        "inplace operation: [torch.DoubleTensor [2, 5, 3]], which is output 0 of Sigmoid, is at version 1; expected "
        "version 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False).",
    ),
    Fixture(
        "gradient", "missing", real(SQUARE, "gradient"), code("def answer(x):\n    return x.detach() ** 2"),
        "no gradient reaches x",
    ),
    Fixture(
        "gradient", "wrong", real(SQUARE, "gradient"), code("def answer(x):\n    return x.detach() * x"),
        "the gradient of x is wrong: at [1, 2, 0] it is -2.87628, expected -5.75256",
    ),
    module(
        "    def __init__(self, width):\n        super().__init__()\n        self.unused = torch.nn.Parameter(torch.ones(1))\n\n"
        "    def forward(self, x):\n        return x * 1\n",
        "parameter_missing", "1 of 1 parameters get no gradient",
    ),
    module(
        "    def __init__(self, width):\n        super().__init__()\n        self.root = torch.nn.Parameter(torch.zeros(1))\n\n"
        "    def forward(self, x):\n        return x + self.root.sqrt()\n",
        "parameter_not_finite", "1 of 1 parameters get a NaN or infinite gradient",
    ),
    badly("return None if x.shape[-1] % 2 else x.transpose(1, 2)", "returned_instead", "bad input gave None (an odd D); expected ValueError to be raised"),
    badly("return x.transpose(1, 2)", "not_raised", "bad input was accepted (an odd D); expected ValueError"),
    badly(
        "assert x.shape[-1] % 2 == 0, 'odd'", "other",
        "bad input raised AssertionError (odd), expected ValueError", line=7,
    ),
    badly(
        "x.zero_()\n    raise ValueError('odd')", "changed_first",
        "ValueError was raised, but x had been changed before", unchanged=["x"],
    ),
    *map(stopped_on_bad_input, STOPS),
]  # fmt: skip
# Needs a second device: tests/checks/test_pure.py shows it on observations.
NOT_HERE = {("device", "device")}


def test_every_finding_has_a_fixture() -> None:
    assert {(f.check, f.code) for f in FIXTURES} | NOT_HERE == codes()


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f.id)
def test_it_fails_its_check_and_only_it(fixture: Fixture, judge: Judge) -> None:
    report = judge(fixture.task, fixture.source)
    failed = {check.name for check in report.checks if check.status is Status.FAILED}
    assert failed == {fixture.check}, [(c.name, c.message) for c in report.checks if c.name in failed]
    assert report.verdict is Verdict.FAILED
    result = report.check(fixture.check)
    # The library's own words for an operation of backward differ between its versions.
    message = result.message.replace("of SigmoidBackward0,", "of Sigmoid,")
    assert (result.code, message) == (fixture.code, fixture.message)
    assert result.case_name == fixture.case
    assert (result.place.line if result.place else None) == fixture.line


# Many fixtures share a problem: each distinct one once.
APART = {(f.task.problem.model_dump_json(), f.task.versions.source): f for f in FIXTURES}


@pytest.mark.parametrize("fixture", APART.values(), ids=lambda f: f.id)
def test_the_reference_passes(fixture: Fixture, judge: Judge) -> None:
    report = judge(fixture.task, fixture.task.versions.submission_source("reference").decode())
    assert report.verdict is Verdict.PASSED, [(c.name, c.message) for c in report.checks]
