"""What `mhaquiz new` writes is a problem that loads and whose versions do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from grader.scaffold import is_name, scaffold
from grader.spec.load import load_problem


def versions(problem: str = "pair-up") -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(scaffold(problem, "mine").solution, namespace)
    return namespace


def written(folder: Path) -> Path:
    path = folder / "mine" / "pair-up.yaml"
    path.parent.mkdir()
    path.write_text(scaffold("pair-up", "mine").problem, encoding="utf-8")
    return path


def test_the_problem_file_is_valid(tmp_path: Path) -> None:
    path = written(tmp_path)
    problem = load_problem(path)
    assert (problem.id, problem.track, problem.entry) == ("pair-up", "mine", "pair_up")
    assert "def pair_up(x: torch.Tensor)" in problem.starter


def test_every_listed_mistake_has_its_version(tmp_path: Path) -> None:
    path = written(tmp_path)
    wrong = {
        name.removeprefix("wrong_").replace("_", "-") for name in versions() if name.startswith("wrong_")
    }
    assert {mistake.id for mistake in load_problem(path).mistakes} == wrong


def test_right_versions_agree_and_wrong_ones_do_not() -> None:
    x = torch.arange(30.0).reshape(3, 10)
    found = versions()
    asked = found["reference"](x)
    assert asked.shape == (3, 5, 2)
    assert asked[0, :2].tolist() == [[0.0, 2.0], [4.0, 6.0]]
    for name, run in found.items():
        if name.startswith(("right_", "wrong_")):
            assert torch.equal(run(x), asked) is name.startswith("right_"), name


def test_an_id_that_begins_with_a_digit_gets_a_name_python_takes() -> None:
    assert "\nentry: f_2d_rope\n" in scaffold("2d-rope", "mine").problem


@pytest.mark.parametrize("text", ["split-heads", "a", "2d-rope"])
def test_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["", "Split", "a_b", "a--b", "-a", "a-", "../a", "a b", "é", "a\n"])
def test_no_names(text: str) -> None:
    assert not is_name(text)
    with pytest.raises(ValueError, match="not a name"):
        scaffold(text, "mine")
