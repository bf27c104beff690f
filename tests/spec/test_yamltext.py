"""YAML text -> data and places: the core schema, what is refused, and hostile files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from grader.errors import ProblemFileError
from grader.spec.yamltext import Document, parse, read_text

PARSERS = [yaml.BaseLoader, *([yaml.CBaseLoader] if hasattr(yaml, "CBaseLoader") else [])]


@pytest.fixture(params=PARSERS, ids=lambda parser: parser.__name__)
def parser(request: pytest.FixtureRequest) -> Any:
    return request.param


def _slips(text: str, parser: Any = PARSERS[-1]) -> list[str]:
    try:
        mistakes = list(parse(text, "f.yaml", parser).mistakes)
    except ProblemFileError as error:
        mistakes = error.mistakes
    return [str(mistake).removeprefix("f.yaml:") for mistake in mistakes]


def _value(text: str) -> Any:
    return parse(f"k: {text}", "f.yaml").data["k"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5e+3", -1500.0),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("+7", 7),
        ("-.inf", -math.inf),
        (".Inf", math.inf),
        ("~", None),
        ("", None),
        ("Null", None),
        ("true", True),
        ("FALSE", False),
    ],
)
def test_the_core_schema_reads_numbers_and_words(text: str, value: Any) -> None:
    assert _value(text) == value
    assert type(_value(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "on",
        "yes",
        "y",
        "N",
        "Off",
        "2..5",
        "1_000",
        "12:30:45",
        "2024-01-02",
        "0b1",
        "1e",
        "tRUE",
        "=",
        "<<",
    ],
)
def test_the_rest_is_text(text: str) -> None:
    assert _value(text) == text


def test_not_a_number_and_quoted_text() -> None:
    assert math.isnan(_value(".nan"))
    assert _value('"1"') == "1"
    assert _value("'true'") == "true"
    assert _value("|\n  1\n") == "1\n"


def test_keys_are_text_or_whole_numbers() -> None:
    data = parse("{N: 1, y: 2, null: 3, true: 4, -1: 5, '2': 6, 1.5: 7}", "f.yaml").data
    assert data == {"N": 1, "y": 2, "null": 3, "true": 4, -1: 5, "2": 6, "1.5": 7}


letters = st.text(st.sampled_from("abcXYZ019 .:-#{}[],&*!|>'\"%@`~é漢\n\t\\"), max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | letters
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(letters, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_json_reads_as_itself(value: Any) -> None:
    assert parse(json.dumps(value, ensure_ascii=False), "f.yaml").data == value


@given(values)
def test_both_parsers_agree(value: Any) -> None:
    text = yaml.safe_dump({"k": value}, allow_unicode=True)
    documents = [parse(text, "f.yaml", one) for one in PARSERS]
    assert all(document.data == documents[0].data for document in documents)
    places = [[(mark.line, mark.column) for mark in document.keys.values()] for document in documents]
    assert all(one == places[0] for one in places)


def test_every_part_has_its_place() -> None:
    document = parse("é: 1\nb:\n  - {c: x y, d: 'q'}\n  - |\n    two\n    lines\n", "f.yaml")
    assert _place(document, ("b",)) == (3, 3)
    assert _place(document, ("b", 0, "c")) == (3, 9)
    assert document.text_mistake(("b", 0, "c"), 3, "m").column == 11
    assert document.text_mistake(("b", 0, "d"), 1, "m").column == 18
    assert _place(document, ("b", 9, "gone")) == (3, 3)
    assert (document.keys["b", 0, "d"].line, document.keys["b", 0, "d"].column) == (3, 14)
    block = document.block_mistake(("b", 1), 2, 3, "m")
    assert (block.line, block.column) == (6, 7)


def _place(document: Document, steps: tuple[str | int, ...]) -> tuple[int, int]:
    mark = document.at(steps)
    return mark.line, mark.column


def test_an_alias_stands_at_its_own_place() -> None:
    document = parse("a: &x {s: 1}\nb: *x\n", "f.yaml")
    assert document.data == {"a": {"s": 1}, "b": {"s": 1}}
    assert _place(document, ("b",)) == (2, 4)


def _nested_aliases() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return "\n".join(lines)


def _deep_aliases() -> str:
    return "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 60))


TAB = "a tab is used for indentation: YAML allows only spaces there"


@pytest.mark.parametrize(
    ("text", "slips"),
    [
        ("a: 1\nb: 2\na: 3\n", ["3:1: the key `a` is given twice, first at line 1, column 1"]),
        ("{1: a, 1: b}", ["1:8: the key `1` is given twice, first at line 1, column 2"]),
        ("a: !!str 5\n", ["1:4: tags are not used in problem files, found `tag:yaml.org,2002:str`"]),
        ("a: !x [1]\n", ["1:4: tags are not used in problem files, found `!x`"]),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ["3:3: merge keys (`<<`) are not supported: write the keys out"]),
        ("a: 1\n---\nb: 2\n", ["2:1: a second document begins here: one file holds one problem"]),
        ("[a]: 1\n", ["1:1: a key must be plain text: put text that begins with { or [ in quotes"]),
        ("? &k a\n: 1\n", ["1:3: a key cannot have an anchor or a tag"]),
        ("a: *b\n", ["1:4: the alias `*b` names no anchor before it"]),
        ("a: &b [*b]\n", ["1:8: the alias `*b` lies inside what it stands for"]),
        ("# nothing\n", ["1:1: the file holds only comments: `mhaquiz new ID` writes one to start from"]),
        ("a:\n\tb: 1\n", [f"2:1: {TAB}"]),
        ("a: b: c\n", ["1:5: unexpected `:` here: put text that holds a colon in quotes, and line keys up"]),
        ("a: @x\n", ["1:4: text cannot begin with `@`: put it in quotes"]),
        ("a: `x`\n", ["1:4: text cannot begin with ``: put it in quotes".replace("``", "```")]),
        ("a: x\n\x07", ["2:1: the character U+0007 cannot be shown and is not allowed in YAML"]),
        ("[" * 500, ["1:41: nested more than 40 levels deep"]),
        ("a: " + "9" * 5000, ["1:4: a number of 5000 characters is too long"]),
        (f"[{'x, ' * 20_001}]", ["1:1: more than 20000 values with aliases followed"]),
        (_nested_aliases(), ["5:5: more than 20000 values with aliases followed"]),
        (_deep_aliases(), ["40:6: nested more than 40 levels deep with aliases followed"]),
    ],
)
def test_what_surprises_is_refused(text: str, slips: list[str], parser: Any) -> None:
    assert _slips(text, parser) == slips


def test_the_parser_s_own_limit_is_worded_alike(parser: Any) -> None:
    (slip,) = _slips("[" * 5000, parser)
    assert slip.endswith(": nested more than 40 levels deep")


def test_other_slips_keep_the_parser_s_words() -> None:
    (slip,) = _slips("a: [1, 2\nb: 3\n")
    assert slip.startswith("2:2: not valid YAML: ")
    assert slip.endswith("(while parsing a flow sequence that begins at line 1)")


def test_a_slip_at_the_end_lies_in_the_file(parser: Any) -> None:
    assert _slips("a: 1\n{", parser)[0].startswith("2:")


def test_all_slips_are_told_and_a_fatal_one_last() -> None:
    assert _slips("a: 1\na: !t 2\n<<: 3\n'b\n")[:3] == [
        "2:4: tags are not used in problem files, found `!t`",
        "2:1: the key `a` is given twice, first at line 1, column 1",
        "3:1: merge keys (`<<`) are not supported: write the keys out",
    ]


# --- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "1:1: the file is empty: `mhaquiz new ID` writes one to start from"),
        (b" \n\n", "1:1: the file is empty: `mhaquiz new ID` writes one to start from"),
        (b"\xef\xbb\xbfa: 1", "1:1: the file begins with a byte order mark: save it as UTF-8 without one"),
        (b"a: 1\nb: \xe9\n", "2:4: not UTF-8: byte 0xe9 at offset 8; save the file as UTF-8"),
        (b"\xff\xfea\x00", "1:1: not UTF-8: byte 0xff at offset 0; save the file as UTF-8"),
        (b"a" * 5_000_000, "1:1: the file has 5.0 MB, a problem file may have at most 1 MB"),
    ],
)
def test_a_file_that_is_no_text(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    with pytest.raises(ProblemFileError) as caught:
        read_text(path)
    assert [str(mistake) for mistake in caught.value.mistakes] == [f"{path}:{message}"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "this is a directory, expected a problem file (.yaml)"),
        ("gone.yaml", "cannot read the file: No such file or directory"),
        ("nul\0.yaml", "cannot read the file: its name is not a file name"),
    ],
)
def test_a_path_that_is_no_file(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError) as caught:
        read_text(tmp_path / name)
    assert [mistake.message for mistake in caught.value.mistakes] == [message]
