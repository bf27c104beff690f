"""The authoring gate: a sound problem passes it, and each way of being unsound stops it at the right line."""

# ruff: noqa: E501 - a message is one line

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.content import Library
from grader.gate import Gated, Kill, degenerate, gate, matrix, stray_files
from grader.host.engine import Engine
from grader.plugins import Pack
from grader.scaffold import scaffold
from grader.spec.load import load_problem

FILES = scaffold("pair-up", "mine")
CASES = FILES.problem[FILES.problem.index("cases:") : FILES.problem.index("checks:")]
# One precision and two cases are enough here.
PROBLEM = FILES.problem.replace(
    CASES,
    "dtypes: [float64]\ncases:\n  - {name: plain, visible: true, sizes: {B: 3, P: 5}}\n"
    "  - {name: strided, sizes: {B: 4, P: 3}, layouts: {x: strided}}\n",
)
SOLUTION = FILES.solution


class Author:
    """A pack in a folder, changed text by text."""

    def __init__(self, folder: Path) -> None:
        self.problem = folder / "problems" / "mine" / "pair-up.yaml"
        self.solution = folder / "solutions" / "mine" / "pair-up.py"
        self.folder = folder
        for path, text in ((self.problem, PROBLEM), (self.solution, SOLUTION)):
            path.parent.mkdir(parents=True)
            path.write_text(text)

    def change(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert text.count(old) >= 1, old
        path.write_text(text.replace(old, new, 1))

    def library(self) -> Library:
        return Library((Pack("mine", self.folder / "problems", self.folder / "solutions"),), self.folder)

    def gate(self, engine: Engine) -> Gated:
        return gate(self.library(), "pair-up", engine)

    def line(self, path: Path, text: str) -> int:
        """The first line of a file that holds a text, counted from 1."""
        return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.fixture
def author(tmp_path: Path) -> Author:
    return Author(tmp_path)


def told(result: Gated, author: Author) -> list[str]:
    return [str(error).replace(f"{author.folder}/", "") for error in result.errors]


def test_a_sound_problem_passes(author: Author, engine: Engine) -> None:
    result = author.gate(engine)
    assert told(result, author) == []
    assert result.status == "passed"
    assert [(k.version, k.expected, k.status, k.named) for k in result.kills] == [
        ("reference", "passed", "passed", ()),
        ("right_reshape", "passed", "passed", ()),
        ("right_stack", "passed", "passed", ()),
        ("right_added", "passed", "passed", ()),
        ("wrong_halves_paired", "failed", "failed", ("halves-paired",)),
        ("wrong_not_doubled", "failed", "failed", ("not-doubled",)),
        ("(starter)", "failed", "failed", ()),
        ("(all-zeros)", "failed", "failed", ()),
        ("(all-ones)", "failed", "failed", ()),
        ("(first-input-returned)", "failed", "failed", ()),
    ]


def test_the_json_of_a_problem() -> None:
    from grader.errors import Mistake

    result = Gated("a", (Mistake("a.yaml", 3, 4, "no"),), (Kill("wrong_x", "failed", "failed", ("x",)),))
    assert result.to_json() == {
        "id": "a", "status": "failed",
        "errors": [{"file": "a.yaml", "line": 3, "column": 4, "message": "no"}],
        "kills": [{"version": "wrong_x", "expected": "failed", "status": "failed", "named": ["x"]}],
    }  # fmt: skip


def test_the_matrix_lists_every_version() -> None:
    kills = (Kill("reference", "passed", "passed"), Kill("wrong_x", "failed", "failed", ("x",)))
    assert matrix([Gated("a", (), kills)]).splitlines()[5:] == [
        "## a", "", "| version | verdict | named |", "|---|---|---|",
        "| `reference` | passed |  |", "| `wrong_x` | failed | x |",
    ]  # fmt: skip


# What stops it before anything runs


def test_a_broken_problem_file(author: Author, engine: Engine) -> None:
    author.change(author.problem, "level: 1 ", "level: 9 ")
    result = author.gate(engine)
    line = author.line(author.problem, "level: 9")
    assert [e.line for e in result.errors] == [line]
    assert told(result, author)[0].startswith(f"problems/mine/pair-up.yaml:{line}:8: ")
    assert result.kills == ()


def test_a_solution_file_that_is_no_python(author: Author, engine: Engine) -> None:
    author.change(author.solution, "def right_stack(x):", "def right_stack(x)")
    line = author.line(author.solution, "def right_stack")
    assert told(author.gate(engine), author) == [f"solutions/mine/pair-up.py:{line}:19: expected ':'"]


def test_a_solution_file_that_raises(author: Author, engine: Engine) -> None:
    author.change(author.solution, "def reference", "value = 1 / 0\n\n\ndef reference")
    line = author.line(author.solution, "1 / 0")
    assert told(author.gate(engine), author) == [
        f"solutions/mine/pair-up.py:{line}:1: ZeroDivisionError: division by zero"
    ]


def test_a_missing_solution_file(author: Author, engine: Engine) -> None:
    author.solution.unlink()
    assert told(author.gate(engine), author) == [
        "solutions/mine/pair-up.py:1:1: cannot read the solution file of `pair-up`: No such file or directory"
    ]


def test_no_reference(author: Author, engine: Engine) -> None:
    author.change(author.solution, "def reference", "def helper")
    assert told(author.gate(engine), author) == ["solutions/mine/pair-up.py:1:1: there is no `reference`"]


def test_a_mistake_without_a_wrong_version(author: Author, engine: Engine) -> None:
    author.change(author.solution, "def wrong_not_doubled", "def helper")
    line = author.line(author.problem, "id: not-doubled")
    (said,) = told(author.gate(engine), author)
    assert said.startswith(
        f"problems/mine/pair-up.yaml:{line}:9: mistake `not-doubled` has no `wrong_not_doubled` in "
    )


def test_a_wrong_version_without_a_mistake(author: Author, engine: Engine) -> None:
    author.change(
        author.solution,
        "def wrong_not_doubled",
        "def wrong_halved(x):\n    return x / 2\n\n\ndef wrong_not_doubled",
    )
    line = author.line(author.solution, "def wrong_halved")
    first = told(author.gate(engine), author)[0]
    assert first.startswith(
        f"solutions/mine/pair-up.py:{line}:1: `wrong_halved` makes the mistake `halved`, which "
    )
    assert first.endswith("pair-up.yaml lacks")


def test_a_required_problem_that_is_none(author: Author, engine: Engine) -> None:
    author.change(author.problem, "requires: []", "requires: [no-such]")
    line = author.line(author.problem, "requires: [no-such]")
    assert told(author.gate(engine), author) == [
        f"problems/mine/pair-up.yaml:{line}:12: `requires` names `no-such`, which is no problem"
    ]


# What stops it once versions have run


def test_a_reference_that_raises_is_the_problem_s_fault(author: Author, engine: Engine) -> None:
    author.change(
        author.solution,
        "return 2 * x.unflatten(-1, (-1, 2))\n\n\ndef right_reshape",
        "return x.nothing\n\n\ndef right_reshape",
    )
    line, place = author.line(author.solution, "def reference"), author.line(author.solution, "x.nothing")
    result = author.gate(engine)
    assert told(result, author) == [
        f"solutions/mine/pair-up.py:{line}:1: `reference` came out as grader_error (the reference raised AttributeError: "
        "'Tensor' object has no attribute 'nothing' on case `plain` in float64), expected passed"
    ]
    assert [k.version for k in result.kills] == ["reference"], "nothing else can be judged without it"
    assert place == line + 1


def test_a_right_version_that_fails(author: Author, engine: Engine) -> None:
    author.change(author.solution, "return pairs + pairs", "return pairs + pairs + 1")
    line = author.line(author.solution, "def right_added")
    (said,) = told(author.gate(engine), author)
    assert said.startswith(
        f"solutions/mine/pair-up.py:{line}:1: `right_added` failed (values: 30 of 30 elements are wrong; "
    )
    assert said.endswith(" [plain]), expected passed")


def test_a_mistake_that_nothing_kills(author: Author, engine: Engine) -> None:
    author.change(
        author.solution, "    return x.unflatten(-1, (-1, 2))\n", "    return x.unflatten(-1, (-1, 2)) * 2\n"
    )
    line = author.line(author.solution, "def wrong_not_doubled")
    assert told(author.gate(engine), author) == [
        f"solutions/mine/pair-up.py:{line}:1: `wrong_not_doubled` passed, expected failed"
    ]


def test_a_mistake_that_is_named_as_its_sibling_too(author: Author, engine: Engine) -> None:
    author.change(
        author.solution,
        "    return x.unflatten(-1, (-1, 2))\n",
        "    return 2 * x.unflatten(-1, (2, -1)).mT\n",
    )
    line, other = (
        author.line(author.solution, f"def wrong_{name}") for name in ("halves_paired", "not_doubled")
    )
    said = told(author.gate(engine), author)
    assert [s.split(":")[1] for s in said] == [str(line), str(other)]
    assert said[0].startswith(
        f"solutions/mine/pair-up.py:{line}:1: `wrong_halves_paired` is named as `halves-paired`, `not-doubled`, expected `halves-paired`: values: "
    )


def test_a_starter_that_passes(author: Author, engine: Engine) -> None:
    author.change(
        author.problem, "      raise NotImplementedError", "      return 2 * x.unflatten(-1, (-1, 2))"
    )
    line = author.line(author.problem, "starter:")
    assert told(author.gate(engine), author) == [f"problems/mine/pair-up.yaml:{line}:1: the starter passed"]


def test_a_degenerate_answer_that_passes(author: Author, engine: Engine) -> None:
    author.change(
        author.solution,
        "return 2 * x.unflatten(-1, (-1, 2))\n\n\ndef right_reshape",
        "return 0 * x.unflatten(-1, (-1, 2))\n\n\ndef right_reshape",
    )
    said = told(author.gate(engine), author)
    assert (
        "solutions/mine/pair-up.py:1:1: the degenerate answer `all-zeros` passed: no case tells it from the reference"
        in said
    )


def test_stray_files(author: Author) -> None:
    stray = author.folder / "solutions" / "mine" / "left-over.py"
    stray.write_text("")
    assert [str(error) for error in stray_files(author.library())] == [
        f"{stray}:1:1: stray file: it belongs to no problem"
    ]


# Degenerate answers


def answers(author: Author, **fields: Any) -> dict[str, str]:
    problem = load_problem(author.problem).model_copy(update=fields)
    return {name: source.decode() for name, source in degenerate(problem, SOLUTION)}


def test_low_precision_inside_is_tried_on_real_numbers_only(author: Author) -> None:
    assert set(answers(author)) == {"all-zeros", "all-ones", "first-input-returned"}
    assert set(answers(author, numbers="real")) == {
        "all-zeros",
        "all-ones",
        "bfloat16-inside",
        "first-input-returned",
    }


@pytest.mark.parametrize("name", ["all-zeros", "all-ones", "bfloat16-inside", "first-input-returned"])
@pytest.mark.parametrize("kind", ["function", "class"])
def test_degenerate_answers_run(name: str, kind: str, author: Author) -> None:
    import torch

    solution = SOLUTION
    if kind == "class":
        solution = "import torch\n\n\nclass reference(torch.nn.Module):\n    def forward(self, x):\n        return (2 * x, [x])\n"
    problem = load_problem(author.problem).model_copy(update={"numbers": "real", "kind": kind})
    names: dict[str, Any] = {}
    exec(dict(degenerate(problem, solution))[name].decode(), names)
    x = torch.tensor([[1.0, 2.001]])
    entry = names["pair_up"]
    result = entry()(x) if kind == "class" else entry(x)
    first = result[0] if isinstance(result, tuple) else result
    assert first.dtype == torch.float32
    assert not torch.equal(first.flatten(), 2 * x.flatten())
