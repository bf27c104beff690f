"""Loading problem files: each slip has one message at its place; only ProblemFileError is raised."""

# ruff: noqa: E501 - one row of a table is one line

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_problem import TEXT, edited, told, write

from grader.errors import ExitCode, Fault, ProblemFileError
from grader.spec.load import Summary, load_problem, load_summary
from grader.spec.model import MemoryLayout, TensorInput
from grader.spec.yamltext import parse


def test_a_sound_file_loads(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path, TEXT)))
    assert problem.id == "swap"
    assert problem.inputs["x"] == TensorInput(shape="B S (H d)")
    assert [use.name for use in problem.checks] == ["no_copy", "allocation", "gradient", "raises"]
    assert problem.checks[0].options == {"of": "x"}


def test_every_form_of_input_and_check_loads(tmp_path: Path) -> None:
    text = edited(
        (
            "  num_heads: H\n",
            "  num_heads: H\n  w: {dict: {q: {shape: B}, r: 1e-5}}\n  c: {list: [{shape: S d}, H*d, null]}\n"
            "  m: {torch_mha: {embed_dim: H*d, num_heads: H, bias: false}}\n"
            "  p: {shape: B S, layout: {order: [1, 0], pad: {-1: [d, 2]}, step: {0: 2}}}\n",
        ),
        (
            "  - gradient\n",
            "  - {name: gradient, options: {of: [x]}}\n  - {name: strides}\n  - determinism:\n",
        ),
        ("{name: uneven,", "{name: uneven, sizes: {B: 2, S: 3, H: 4, d: 5},"),
    )
    problem = load_problem(write(tmp_path, text))
    layout = problem.inputs["p"]
    assert isinstance(layout, TensorInput)
    assert layout.layout == MemoryLayout(order=[1, 0], pad={-1: ("d", 2)}, step={0: 2})
    assert problem.checks[2].options == {"of": ["x"]}


# Each row: what to change in the sample, and all that is told.
FORM: list[tuple[str, str, list[str]]] = [
    ("title:", "titel:", ["3:1: unknown key `titel`, did you mean `title`?"]),
    ("title: Swap two axes\n", "", ["1:1: missing key `title`"]),
    ("title: Swap two axes\ntrack: mha\n", "", ["1:1: missing keys `title`, `track`"]),
    ("level: 2", "level: easy", ["5:8: `level` must be a whole number from 1 to 5, found 'easy'"]),
    ("level: 2", "level: 9", ["5:8: `level` must be a whole number from 1 to 5, found 9"]),
    ("level: 2", "level: true", ["5:8: `level` must be a whole number from 1 to 5, found true"]),
    ("minutes: 10", "minutes: 0", ["6:10: `minutes` must be a whole number from 1 to 120, found 0"]),
    ("format: 1", "format: 2", ["1:9: `format` must be `1`, found 2"]),
    ("title: Swap two axes", "title:", ["3:7: `title` must be text, found nothing"]),
    ("[other]", "[5]", ["7:12: `requires[0]` must be text, found 5 (put it in quotes to make it text)"]),
    ("[other]", "other", ["7:11: `requires` must be a list of text, found 'other'"]),
    ("returns: B H S d", "returns: 5", ["18:10: `returns` must be text or a list of text, found 5"]),
    ("numbers: exact", "numbers: exakt", ["19:10: `numbers` must be one of `exact`, `real`, found 'exakt', did you mean `exact`?"]),
    ("hints: [one, two, three]", "hints: [one]", ["32:8: `hints` must have exactly 3 entries, found 1"]),
    ("  - {id: viewed, title: viewed, what: You viewed., why: Order., fix: Transpose.}", "  []", ["31:3: `mistakes` must have at least 1 entry, found none"]),
    ("approach: Because.", "aproach: Because.", ["34:22: unknown key `aproach`, did you mean `approach`?"]),
    (", source: model.py", "", ["37:5: missing key `source` of `real_systems[0]`"]),
    ("name: nanoGPT", "name: {a: b}", ["37:12: `real_systems[0].name` must be text, found a mapping"]),
    ("  num_heads: H\n", "  num_heads: [1]\n", ["17:14: `inputs.num_heads` must be a mapping, a number, true or false or text, found a list of 1"]),
    ("{shape: B S (H d)}", "{shap: B S (H d)}", ["16:7: unknown key `shap`, did you mean `shape`?"]),
    ("{shape: B S (H d)}", "{shape: B S (H d), zzz: 1}", ["16:25: unknown key `zzz`; the keys here are `shape`, `values`, `dtype`, `layout`, `options`"]),
    ("{shape: B S (H d)}", "{shape: B S (H d), layout: fusd}", ["16:33: `inputs.x.layout` must be one of `dense`, `fused`, `transposed`, `sequence-first`, `sliced`, `strided` or a mapping, found 'fusd', did you mean `fused`?"]),
    ("{shape: B S (H d)}", "{shape: B S (H d), layout: {ordr: [0]}}", ["16:34: unknown key `ordr`, did you mean `order`?"]),
    ("{shape: B S (H d)}", "{shape: B S (H d), layout: {pad: {a: [1, 1]}}}", ["16:40: a key of `inputs.x.layout.pad` must be a whole number, found 'a'"]),
    ("{shape: B S (H d)}", "{shape: B S (H d), layout: {pad: {0: [1]}}}", ["16:43: `inputs.x.layout.pad[0]` must be a list of 2, found a list of 1"]),
    ("num_heads: H\n", "num_heads: {torch_mha: {embed_dims: H}}\n", ["17:27: unknown key `embed_dims`, did you mean `embed_dim`?"]),
    ("num_heads: H\n", "num_heads: {list: [{dict: {a: {shape: 5}}}]}\n", ["17:41: `inputs.num_heads.list[0].dict.a.shape` must be text, found 5 (put it in quotes to make it text)"]),
    ("B: 2, S: 5", "B: 2.5, S: 5", ["21:30: `cases[0].sizes.B` must be a whole number, text or a list of whole numbers, found 2.5"]),
    ("B: 2, S: 5", "B: [2, x], S: 5", ["21:34: `cases[0].sizes.B[1]` must be a whole number, found 'x'"]),
    ("B: 2, S: 5", "B: 2, 7: 1, S: 5", ["21:33: a key of `cases[0].sizes` must be text, found 7"]),
    ("name: plain,", "name: plain, visible: yes,", ["21:28: `cases[0].visible` must be true or false, found 'yes'"]),
    ("references:", "limits: {seconds: 500}\nreferences:", ["39:19: `limits.seconds` must be a number above 0 and at most 120, found 500"]),
    ("id: swap", "id: Swap_It", ["2:5: `id` must be text of lower-case letters, digits and single dashes, found 'Swap_It'"]),
    ("references:", "5: 1\nreferences:", ["39:1: unknown key `5`; `mhaquiz schema` describes every key"]),
    ("{shape: B S (H d)}", "{5: 1, shape: B S (H d)}", ["16:7: unknown key `5`; the keys here are `shape`, `values`, `dtype`, `layout`, `options`"]),
    ("references:", "qqq: 1\nreferences:", ["39:1: unknown key `qqq`; `mhaquiz schema` describes every key"]),
]  # fmt: skip

CHECK_FORM: list[tuple[str, str, list[str]]] = [
    ("  - gradient\n", "  - gradent\n", ["28:5: unknown check `gradent`, did you mean `gradient`?"]),
    ("  - gradient\n", "  - gradent: {}\n", ["28:5: unknown check `gradent`, did you mean `gradient`?"]),
    ("  - gradient\n", "  - {name: gradent}\n", ["28:12: unknown check `gradent`, did you mean `gradient`?"]),
    ("{of: x}", "{off: x}", ["26:15: unknown key `off`, did you mean `of`?"]),
    ("no_copy: {of: x}", "no_copy", ["26:5: missing key `of` of `checks[0].no_copy`"]),
    ("no_copy: {of: x}", "no_copy:", ["26:13: missing key `of` of `checks[0].no_copy`"]),
    ("no_copy: {of: x}", "no_copy: x", ["26:14: the options of `no_copy` must be a mapping, found 'x'"]),
    ("metric: explicit", "metric: explizit", ["27:37: `checks[1].allocation.budgets[0].metric` must be one of `explicit`, `held`, `new`, `largest`, `peak`, found 'explizit', did you mean `explicit`?"]),
    ('at_most: "B*S"', "at_most: 0", ["27:56: `checks[1].allocation.budgets[0].at_most` must be text, found 0 (put it in quotes to make it text)"]),
    ("  - gradient\n", "  - {strides: , gradient: }\n", ["28:5: one entry holds one check, found `strides`, `gradient`: begin each with `- `"]),
    ("  - gradient\n", "  - 5\n", ["28:5: a check is its name, or its name and options such as `no_copy: {of: x}`, found 5"]),
    ("  - gradient\n", "  - gradient\n  - no_copy: {of: x}\n", ["29:5: the check `no_copy` is used twice: put its options in one entry"]),
    ("  - gradient\n", "  - required: {most: {matmull: 1}}\n", ["28:23: unknown key `matmull`, did you mean `matmul`?"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "messages"), FORM + CHECK_FORM)
def test_a_slip_of_form_is_told_once_at_its_place(
    old: str, new: str, messages: list[str], tmp_path: Path
) -> None:
    text = edited((old, new), (", skip: [gradient]", ""))
    assert told(tmp_path, text) == messages


def test_an_unlike_check_is_told_which_there_are(tmp_path: Path) -> None:
    (message,) = told(tmp_path, edited(("  - gradient\n", "  - zzz\n"), (", skip: [gradient]", "")))
    assert message.startswith("28:5: unknown check `zzz`; the checks are `returns`, `shape`, `dtype`, ")


def test_every_mistake_comes_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = edited(
        ("title:", "titel:"),
        ("level: 2", "level: 7"),
        ("returns: B H S d", "returns: B Hx"),
        ("{of: x}", "{of: y}"),
    )
    assert told(tmp_path, text + "level: 3\n") == [
        "3:1: unknown key `titel`, did you mean `title`?",
        "5:8: `level` must be a whole number from 1 to 5, found 7",
        '18:12: unknown size `Hx`, did you mean `H`?, in the shape "B Hx"',
        "26:19: unknown input `y`; there is `x`, `num_heads`",
        "41:1: the key `level` is given twice, first at line 5, column 1",
    ]


def test_the_error_says_whose_fault_it_is_and_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, edited(("title:", "titel:"), ("level: 2", "level: 7")))
    with pytest.raises(ProblemFileError) as caught:
        load_problem(path)
    error = caught.value
    assert (error.what, error.where) == ("2 mistakes in the problem file", f"{path}:3:1")
    assert error.next_step == "correct the lines named, then run `mhaquiz lint`"
    assert (error.fault, error.exit_code) == (Fault.PROBLEM, ExitCode.BROKEN_PROBLEM)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("- a\n", ["1:1: a problem file is a mapping of keys to values, found a list of 1"]),
        ("just text\n", ["1:1: a problem file is a mapping of keys to values, found 'just text'"]),
        ("", ["1:1: the file is empty: `mhaquiz new ID` writes one to start from"]),
    ],
)
def test_what_is_no_mapping(text: str, messages: list[str], tmp_path: Path) -> None:
    assert told(tmp_path, text) == messages


# --- nothing but ProblemFileError -------------------------------------------------------------------------

snippets = st.sampled_from(["\t", "- ", ": ", "{", "}", "[", "]", "*a", "&a ", "!!x ", "<<: ", "'", '"', "|\n", "0x", "~", "\x00", "é", "..", "(", "\n", "5", "true"])  # fmt: skip


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """The sample with a few slices dropped, doubled or replaced."""
    text = TEXT
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        text = text[:start] + draw(snippets | st.just("") | st.just(text[start:end] * 2)) + text[end:]
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def _is_placed(messages: list[str], text: str) -> bool:
    places = [message.split(":", 2)[:2] for message in messages]
    return all(1 <= int(line) <= text.count("\n") + 1 and int(column) >= 1 for line, column in places)


@settings(max_examples=150, deadline=None)
@given(text=mangled())
def test_mangled_text_loads_or_is_told_why(text: str, folder: Path) -> None:
    assert _is_placed(told(folder, text), text)


odd = st.sampled_from([None, True, -1, 0, 1.5, 10**30, "", "x", "2..", "B*", "(", [], {}, [[]], {"a": None}, {5: 1}, {"shape": 1}, ["x", 1]])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), values=st.lists(odd, min_size=1, max_size=3))
def test_odd_values_anywhere_are_told(seed: int, values: list[Any], folder: Path) -> None:
    data = parse(TEXT, "f").data
    draw = random.Random(seed)
    for value in values:
        _replace_somewhere(data, value, draw)
    text = json.dumps(data, default=str)
    assert _is_placed(told(folder, text), text)


def _replace_somewhere(data: Any, value: Any, draw: random.Random) -> None:
    """Walk down at random and replace what is there, or add a key beside it."""
    key = draw.choice(list(data) if isinstance(data, dict) else range(len(data)))
    if isinstance(data[key], dict | list) and data[key] and draw.random() < 0.8:
        _replace_somewhere(data[key], value, draw)
    elif isinstance(data, dict) and draw.random() < 0.2:
        data[f"{key}s"] = copy.deepcopy(value)
    else:
        data[key] = copy.deepcopy(value)


# --- summaries --------------------------------------------------------------------------------------------


def _summary(path: Path) -> Summary:
    return Summary("swap", "Swap two axes", "mha", 2, 10, "Swap heads and tokens.", ("other",), path, "swap")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TEXT, id="header first"),
        pytest.param(TEXT.replace("requires: [other]\n", "") + "requires: [other]\n", id="requires last"),
        pytest.param(TEXT.replace("entry: swap\n", "") + "entry: swap\n", id="entry last"),
        pytest.param(json.dumps(parse(TEXT, "f").data), id="flow style"),
    ],
)
def test_a_summary_is_the_same_wherever_its_keys_stand(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    assert load_summary(path) == _summary(path)
    assert load_summary(str(path)) == _summary(path)


def test_a_summary_without_requirements(tmp_path: Path) -> None:
    assert load_summary(write(tmp_path, edited(("requires: [other]\n", "")))).requires == ()


def test_a_summary_does_not_read_past_the_statement(tmp_path: Path) -> None:
    path = write(tmp_path, edited(("inputs:", "inputs: {{{")))
    assert load_summary(path) == _summary(path)


@pytest.mark.parametrize("old", ["level: 2", "title: Swap two axes", "requires: [other]"])
def test_a_broken_header_tells_every_mistake_of_the_file(old: str, tmp_path: Path) -> None:
    path = write(tmp_path, edited((old, f"{old.split(':')[0]}: {{a: 1}}"), ("{of: x}", "{of: y}")))
    with pytest.raises(ProblemFileError) as caught:
        load_summary(path)
    assert [mistake.line for mistake in caught.value.mistakes][1:] == [26]


def test_a_header_that_is_no_yaml_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, edited(("title: Swap", "title: @Swap")))
    with pytest.raises(ProblemFileError) as caught:
        load_summary(path)
    assert str(caught.value.mistakes[0]) == f"{path}:3:8: text cannot begin with `@`: put it in quotes"


def test_the_declarative_layer_imports_no_torch() -> None:
    code = (
        "import sys\n"
        "import grader.spec.load\n"
        "assert 'pydantic' not in sys.modules, 'summaries need no pydantic'\n"
        "import grader.spec.validate, grader.spec.schema, grader.content, grader.plugins\n"
        "grader.content.default_library().problems()\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
