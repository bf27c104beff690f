"""What `import mhaquiz` offers: a path, a text, a function and a class, from a file and from a notebook."""

from __future__ import annotations

import functools
import linecache
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import mhaquiz
from grader import api
from grader.errors import ProblemFileError, UsageError
from grader.host.engine import Engine
from grader.scaffold import scaffold

HALF = 0.5
RIGHT = """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
"""


@pytest.fixture(autouse=True)
def shared(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the tests is the one that the functions share."""
    monkeypatch.setattr(api, "_engines", {True: engine})


def check_size(x: torch.Tensor, num_heads: int) -> int:
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    return x.shape[-1] // num_heads


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    return x.unflatten(-1, (num_heads, check_size(x, num_heads))).transpose(1, 2)


def my_own_name(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    return x.unflatten(-1, (num_heads, check_size(x, num_heads))).transpose(1, 2)


def test_a_function_with_a_helper() -> None:
    report = mhaquiz.check("split-heads", split_heads)
    assert report.verdict == "passed", report
    assert repr(report) == f"<split-heads: passed, {len(report.checks)} of {len(report.checks)} checks>"


def test_a_function_of_another_name() -> None:
    assert mhaquiz.check("split-heads", my_own_name).verdict == "passed"


def test_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RIGHT)
    for given in (path, str(path)):
        report = mhaquiz.check("split-heads", given)
        assert (report.verdict, report.file) == ("passed", str(path))


def test_a_text_and_bytes_and_a_seed() -> None:
    one = mhaquiz.grade("split-heads", RIGHT, seed="7")
    two = mhaquiz.grade("split-heads", RIGHT.encode(), seed="7")
    assert (one.verdict, two.verdict, one.seed, one.file) == ("passed", "passed", "7", "submission.py")
    assert mhaquiz.grade("split-heads", RIGHT).seed != mhaquiz.grade("split-heads", RIGHT).seed


def test_a_report_shows_itself() -> None:
    wrong = mhaquiz.check("split-heads", my_wrong_split)
    assert "viewed" in str(wrong)
    assert "\x1b" not in str(wrong)
    html = wrong._repr_html_()
    assert "<" in html
    assert "<script" not in html


def my_wrong_split(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    check_size(x, num_heads)
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def in_a_notebook(source: str, name: str = "<cell 1>") -> dict[str, Any]:
    """As a notebook runs a cell: compiled from a text that only linecache knows."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), names)
    return names


def test_a_function_of_a_notebook() -> None:
    names = in_a_notebook("import torch\nimport torch.nn.functional as F\n" + RIGHT)
    assert mhaquiz.check("split-heads", names["split_heads"]).verdict == "passed"


# The source that is sent


def uses_much(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.relu(x) * math.sqrt(HALF) + functools.reduce(lambda a, b: a + b, [1])


class Module(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.half = HALF

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return uses_much(x) * self.half


class Small(Module):
    pass


def loaded(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "submission"}
    exec(source, names)
    return names


def test_imports_constants_and_helpers_go_along() -> None:
    names = loaded(api.source_of(uses_much, "answer"))
    x = torch.tensor([4.0, -1.0])
    assert torch.equal(names["answer"](x), uses_much(x))


def test_a_class_goes_with_what_its_methods_use() -> None:
    names = loaded(api.source_of(Module, "Answer"))
    x = torch.tensor([4.0, -1.0])
    assert torch.equal(names["Answer"]()(x), Module()(x))


def test_a_function_inside_another_is_unindented() -> None:
    def answer(x: torch.Tensor) -> torch.Tensor:
        if x.numel():
            return x * HALF
        return x

    assert float(loaded(api.source_of(answer, "answer"))["answer"](torch.tensor(4.0))) == 2.0


def test_an_object_without_source_is_refused() -> None:
    made: Callable[..., Any] = eval("lambda x, num_heads: x")
    with pytest.raises(UsageError) as caught:
        mhaquiz.check("split-heads", made)
    assert caught.value.what == "the source of this object cannot be read"
    assert caught.value.next_step == "write it to a file and check the path"


# What is wrong


def test_an_unknown_problem() -> None:
    with pytest.raises(UsageError, match="there is no problem `split-head`"):
        mhaquiz.check("split-head", split_heads)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        mhaquiz.check("split-heads", tmp_path / "no.py")
    assert caught.value.what == f"`{tmp_path / 'no.py'}` cannot be read"
    assert caught.value.cause == "No such file or directory"


def test_packs(tmp_path: Path) -> None:
    files = scaffold("pair-up", "mine")
    for kind, name, text in (
        ("problems", "pair-up.yaml", files.problem),
        ("solutions", "pair-up.py", files.solution),
    ):
        (tmp_path / kind / "mine").mkdir(parents=True)
        (tmp_path / kind / "mine" / name).write_text(text)
    assert mhaquiz.load_problem("pair-up", packs=[tmp_path]).entry == "pair_up"
    source = "def pair_up(x):\n    return 2 * x.unflatten(-1, (-1, 2))\n"
    assert mhaquiz.grade("pair-up", source, packs=[tmp_path]).verdict == "passed"
    (tmp_path / "problems" / "mine" / "pair-up.yaml").write_text("format: 2\n")
    with pytest.raises(ProblemFileError):
        mhaquiz.load_problem("pair-up", packs=[tmp_path])
