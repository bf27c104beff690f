"""What a problem file says must fit together: each rule has a file that breaks it and only it."""

# ruff: noqa: E501 - one row of a table is one line

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sample_problem import TEXT, edited, told

from grader.errors import ProblemFileError
from grader.spec.load import load_problem

X = "{shape: B S (H d)}"
PLAIN = "{B: 2, S: 5, H: 4, d: 3}"
STEP = "numbers: exact\nsteps:\n"

# Each row: what to change in the sample, and all that is told.
SIZES: list[tuple[str, str, list[str]]] = [
    (X, "{shape: B S (H d}", ['16:18: `(` is never closed, in the shape "B S (H d"']),
    (X, '{shape: "B S H*d"}', ['16:20: unexpected `*`: a shape holds names, whole numbers, spaces and parentheses, in the shape "B S H*d"']),
    ("returns: B H S d", "returns: [B H S d, B Hh]", ['18:22: unknown size `Hh`, did you mean `H`?, in the shape "B Hh"']),
    ("  num_heads: H\n", "  num_heads: H *\n", ['17:14: not an expression, in the expression "H *"']),
    ("  num_heads: H\n", "  num_heads: 2*heads\n", ['17:16: unknown size `heads`, in the expression "2*heads"']),
    ('"B*S"', '"B*Q"', ['27:59: unknown size `Q`, in the expression "B*Q"']),
    ('"B*S"', '"B/S"', ['27:57: `/` is not allowed, sizes are whole numbers: use `//`, in the expression "B/S"']),
    (PLAIN, "{B: 2, S: 5, H: 4}", ["21:26: the case `plain` lacks the size `d`, which `inputs.x.shape` uses"]),
    (PLAIN, "{B: 2, s: 5, H: 4, d: 3}", ["21:26: the case `plain` lacks the size `S`, which `inputs.x.shape` uses; nothing uses its `s`"]),
    (PLAIN, "{B: 2, S: 5, d: 8//H, H: 4}", ["21:45: the size `d` uses `H`, which is defined after it: move `H` before `d`"]),
    (PLAIN, "{B: 2, S: 5, H: 4, d: d+1}", ["21:48: the size `d` uses itself"]),
    (PLAIN, "{B: 2, num: 5, S: nun, H: 4, d: 3}", ["21:44: unknown size `nun`, did you mean `num`?"]),
    (PLAIN, "{B: 5..2, S: 5, H: 4, d: 3}", ["21:30: `B`: the range 5..2 is empty, its end is below its start"]),
    (PLAIN, "{B: 2, S: [], H: 4, d: 3}", ["21:36: `S` has an empty list to draw from"]),
    (PLAIN, "{B: -2, S: 5, H: 4, d: 3}", ["21:30: `B` is -2, a size cannot be negative"]),
    (PLAIN, "{B: 2, S: B-3, H: 4, d: 3}", ["21:36: `S` is -1, a size cannot be negative"]),
    (PLAIN, "{B: 2, S: 5, H: 4, d: 3//0}", ['21:48: division by zero, in the expression "3//0"']),
    ("num_heads: 4}}", "num_heads: Q}}", ["24:60: unknown size `Q`, in the expression \"Q\""]),
    ("num_heads: 4}}", "num_heads: S}}", ["24:5: the case `uneven` lacks the size `S`, which `errors[0].inputs.num_heads` uses"]),
    ("layouts: {x: fused}", "layouts: {x: {pad: {-1: [D, d]}}}", ["22:91: unknown size `D`, did you mean `d`?, in the expression \"D\""]),
]  # fmt: skip

NAMES: list[tuple[str, str, list[str]]] = [
    ("id: swap", "id: swop", ["2:5: the id is `swop` but the file is called `swap.yaml`: they must be the same"]),
    ("track: mha", "track: gqa", ["4:8: the track is `gqa` but the file lies in `mha`: they must be the same"]),
    ("[other]", "[other, swap]", ["7:19: `swap` requires itself"]),
    ("[other]", "[other, other]", ["7:19: the required problem `other` is there twice, first at line 7"]),
    ("title: Swap two axes", 'title: " "', ["3:8: this text is empty"]),
    ("name: drawn", "name: plain", ["22:12: the case `plain` is there twice, first at line 21"]),
    ("name: uneven", "name: plain", ["24:12: the case `plain` is there twice, first at line 21"]),
    ("hints:", "  - {id: viewed, title: t, what: w, why: y, fix: f}\nhints:", ["32:10: the mistake `viewed` is there twice, first at line 31"]),
    ("layouts: {x: fused}", "layouts: {num_heads: fused}", ["22:76: unknown tensor input `num_heads`; there is `x`"]),
    ("layouts: {x: fused}", "values: {xs: hostile}", ["22:75: unknown tensor input `xs`, did you mean `x`?"]),
    ("layouts: {x: fused}", "inputs: {num_head: 3}", ["22:75: unknown input `num_head`, did you mean `num_heads`?"]),
    ("{name: uneven,", "{name: uneven, unchanged: [y],", ["24:32: unknown input `y`; there is `x`, `num_heads`"]),
    ("skip: [gradient]", "skip: [gradent]", ["22:94: unknown check of this problem `gradent`, did you mean `gradient`?"]),
    ("skip: [gradient]", "only: [shape, stride]", ["22:101: unknown check of this problem `stride`; there is `returns`, `shape`, `dtype`, `device`, `finite`, `values`, `mutation`, `determinism`, `no_copy`, `allocation`, `gradient`, `raises`"]),
    ("{of: x}", "{of: xx}", ["26:19: unknown input `xx`, did you mean `x`?"]),
    ("metric: explicit,", "metric: explicit, of: [y],", ["27:52: unknown input `y`; there is `x`, `num_heads`"]),
    ("  - gradient\n", "  - gradient: {of: [y]}\n", ["28:21: unknown input `y`; there is `x`, `num_heads`"]),
    ("  - gradient\n", "  - {name: gradient, options: {of: [y]}}\n", ["28:37: unknown input `y`; there is `x`, `num_heads`"]),
    ("  - raises\n", "  - raises\n  - mutation: {allow: [cache]}\n", ["30:24: unknown input `cache`; there is `x`, `num_heads`"]),
    ("  - raises\n", "  - raises\n  - contiguous: {of: k}\n", ["30:22: unknown input `k`; there is `x`, `num_heads`"]),
    ("  - raises\n", "  - raises\n  - causality: {inputs: {q: 1}, axis: 1}\n", ["30:26: unknown input `q`; there is `x`, `num_heads`"]),
    (STEP[:15], STEP + "  - {do: call, args: [x, num_head], observe: true}\n", ["21:26: unknown input or saved result `num_head`, did you mean `num_heads`?"]),
    (STEP[:15], STEP + "  - {do: call, args: [y], save: y, observe: true}\n", ["21:23: unknown input or saved result `y`; there is `x`, `num_heads`"]),
    (STEP[:15], STEP + "  - {do: eval, on: module, observe: true}\n", ["21:20: unknown saved result `module`; there is none"]),
    (STEP[:15], STEP + "  - {do: call, args: [x, num_heads]}\n", ["21:3: no step has `observe: true`, so nothing would be judged"]),
    (STEP[:15], STEP + "  - {do: call, save: a}\n  - {do: call, save: a, observe: true}\n", ["22:22: the saved result `a` is there twice, first at line 21"]),
    (STEP[:15], STEP + "  - {do: call, name: swop, observe: true}\n", ["21:22: the starter defines no function `swop`, did you mean `swap`?"]),
]  # fmt: skip

AGREE: list[tuple[str, str, list[str]]] = [
    ("  - raises\n", "", ["23:1: there are `errors` but `checks` does not name `raises`, so they would never be tried"]),
    ("errors:\n  - {name: uneven, inputs: {x: {shape: 2 3 10}, num_heads: 4}}\n", "", ["27:5: the check `raises` needs at least one entry in `errors`"]),
    ("{of: x}", "{of: [x, x]}", ["26:19: `of` names 2 inputs for 1 result: one for each"]),
    ("layouts: {x: fused}", "layouts: {x: {order: [0, 2]}}", ["22:87: `order` must name each of the 3 axes of `x` once, from 0"]),
    ("layouts: {x: fused}", "layouts: {x: {step: {3: 2}}}", ["22:87: `x` has 3 axes, there is no axis 3"]),
    (X, "{shape: B S, layout: {pad: {-3: [0, 1]}}}", ["16:34: `x` has 2 axes, there is no axis -3"]),
    ("entry: swap", "entry: swop", ["10:8: the starter defines no function `swop`, did you mean `swap`?"]),
    ("raise NotImplementedError", "raise (", ["14:13: the starter is not valid Python: '(' was never closed"]),
    ("raise NotImplementedError", "return 'x", ["14:14: the starter is not valid Python: unterminated string literal (detected at line 2)"]),
    ("numbers: exact", "numbers: exact\nkind: class", ["10:8: the starter defines no class `swap`", "20:7: a class needs `steps`: at least `do: new` and one observed `do: method`"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "messages"), SIZES + NAMES + AGREE)
def test_a_slip_of_sense_is_told_once_at_its_place(
    old: str, new: str, messages: list[str], tmp_path: Path
) -> None:
    assert told(tmp_path, edited((old, new))) == messages


def test_a_missing_size_is_told_for_each_case(tmp_path: Path) -> None:
    text = edited(
        (", d: 3}", "}"),
        ("}, layouts: {x: fused}", "}"),
        (X, "{shape: B S (H d) E}"),
        ("{B: 2,", "{E: 2, B: 2,"),
    )
    assert told(tmp_path, text) == [
        "21:26: the case `plain` lacks the size `d`, which `inputs.x.shape` uses",
        "22:26: the case `drawn` lacks the size `E`, which `inputs.x.shape` uses",
    ]


def test_folded_text_is_marked_at_its_start(tmp_path: Path) -> None:
    text = edited(("  num_heads: H\n", "  num_heads: >\n    H +\n    Q\n"))
    assert told(tmp_path, text) == ['17:14: unknown size `Q`, in the expression "H + Q\n"']


@pytest.mark.parametrize("source", ["x = \\0", "x = " + "-" * 50_000 + "1"], ids=["nul", "deep"])
def test_a_starter_that_python_cannot_even_read(source: str, tmp_path: Path) -> None:
    text = edited(("|\n  def swap(x, num_heads):\n      raise NotImplementedError", f'"{source}"'))
    (message,) = told(tmp_path, text)
    assert message.startswith("12:10: the starter is not valid Python")


def test_the_axes_of_an_unreadable_shape_are_not_counted(tmp_path: Path) -> None:
    text = edited((X, "{shape: B (}"), ("layouts: {x: fused}", "layouts: {x: {order: [9]}}"))
    assert told(tmp_path, text) == ['16:16: `(` is never closed, in the shape "B ("']


def test_the_track_of_a_relative_path_is_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mha"
    folder.mkdir()
    (folder / "swap.yaml").write_text(TEXT)
    monkeypatch.chdir(folder)
    assert load_problem("swap.yaml").track == "mha"
    (folder / "swop.yaml").write_text(TEXT)
    with pytest.raises(ProblemFileError):
        load_problem("swop.yaml")


UNKNOWN = re.compile(r"(\d+):(\d+): unknown [a-z ]+ `(\w+)`")
ROWS = [row for row in SIZES + NAMES if UNKNOWN.match(row[2][0])]


@pytest.mark.parametrize(("old", "new", "messages"), ROWS)
def test_an_unknown_name_stands_where_the_message_says(old: str, new: str, messages: list[str]) -> None:
    match = UNKNOWN.match(messages[0])
    assert match is not None
    line = edited((old, new)).splitlines()[int(match[1]) - 1]
    assert line[int(match[2]) - 1 :].startswith(match[3])
