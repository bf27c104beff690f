"""The documents say what is so: commands parse, files exist, tables equal the code, examples are real output."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt
from markdown_it.token import Token

from grader.checks.registry import CHECKS as REGISTERED
from grader.cli.main import COMMANDS, cli
from grader.content import default_library
from grader.errors import ExitCode
from grader.render.terminal import render_terminal
from grader.report import Verdict
from grader.scaffold import scaffold
from grader.spec import model
from grader.spec.checks import CHECKS, Budget
from grader.spec.model import Model
from grader.wording import codes
from tests.command_page import PAGE, page
from tests.conftest import Judge

ROOT = Path(__file__).resolve().parents[1]
DOCS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md"))),
)
MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(doc: str) -> list[Token]:
    """The document's blocks, with the inline parts of each behind it."""
    parsed = MARKDOWN.parse((ROOT / doc).read_text(encoding="utf-8"))
    return [part for block in parsed for part in (block, *(block.children or ()))]


def spans(doc: str) -> Iterator[str]:
    """What stands between backticks."""
    return (token.content for token in tokens(doc) if token.type == "code_inline")


def fences(doc: str, language: str) -> list[str]:
    """The code blocks of a language."""
    return [token.content for token in tokens(doc) if token.type == "fence" and token.info == language]


# --- command lines ----------------------------------------------------------------------------------------

SHELL = {"cat", "cd", ".", "python", "bash", "ruff", "mypy", "mhaquiz"}
PLACEHOLDERS = {"ID": "split-heads", "SHELL": "bash"}
OPERATORS = {"|", "&&", ";", ">", "||"}


def lines(doc: str) -> Iterator[tuple[str, ...]]:
    """Every simple command of the shell blocks, and those between backticks that begin with a program of ours."""
    texts = [line for block in fences(doc, "sh") for line in block.splitlines()]
    texts += [
        text for text in spans(doc) if re.match(r"(mhaquiz|python|bash) \S", text) and "..." not in text
    ]
    for text in texts:
        yield from simple_commands(text)


def simple_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line, without what is redirected to a file."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.commenters = "#"
    words: list[str] = []
    target = False
    for word in reader:
        if word in OPERATORS:
            target = word == ">"
            if not target and words:
                yield tuple(words)
                words = []
        elif not target:
            words.append(word)
    if words:
        yield tuple(words)


LINES = list(dict.fromkeys(line for doc in DOCS for line in lines(doc)))
OURS = [line for line in LINES if line[0] == "mhaquiz"]
NEW = {line[2] for line in OURS if line[1:2] == ("new",) and line[2:]}


def test_the_reader_of_lines_can_tell() -> None:
    text = "mhaquiz schema > a.json && mhaquiz lint x; cat f | mhaquiz attempt x -  # why"
    assert list(simple_commands(text)) == [
        ("mhaquiz", "schema"), ("mhaquiz", "lint", "x"), ("cat", "f"), ("mhaquiz", "attempt", "x", "-"),
    ]  # fmt: skip
    assert len(OURS) > 25
    for wrong in (("mhaquiz", "lst"), ("mhaquiz", "list", "--al"), ("mhaquiz", "attempt", "split-heds")):
        with pytest.raises(AssertionError):
            parses(wrong)


@pytest.mark.parametrize("line", OURS, ids=" ".join)
def test_a_command_line_parses(line: tuple[str, ...]) -> None:
    parses(line)


def parses(line: Sequence[str]) -> None:
    """The command exists, takes these options and values, and the problem that it names exists."""
    words = [PLACEHOLDERS.get(word, word) for word in line[1:]]
    name = words[0] if words and not words[0].startswith("-") else None
    if name is not None and len(words) == 1:
        assert name in COMMANDS, f"there is no command {name}"  # mentioned, not used
        return
    assert name is None or name in COMMANDS, f"there is no command {name}"
    top = cli.make_context("mhaquiz", [], resilient_parsing=True)
    try:
        if name is None:
            cli.make_context("mhaquiz", words)
        else:
            _problems_exist(COMMANDS[name].load().make_context(name, words[1:], parent=top).params)
    except click.exceptions.Exit:
        return  # --help and --version print and end
    except click.ClickException as error:
        raise AssertionError(f"{' '.join(line)}: {error.format_message()}") from error


def _problems_exist(params: dict[str, Any]) -> None:
    known = {*default_library().ids(), *NEW}
    for name in [params.get("problem"), *params.get("ids", ())]:
        assert name is None or name in known or name.endswith(".py"), f"there is no problem {name}"


@pytest.mark.parametrize("line", [line for line in LINES if line not in OURS], ids=" ".join)
def test_another_command_is_known_and_its_script_exists(line: tuple[str, ...]) -> None:
    assert line[0] in SHELL
    if line[0] in ("bash", "python") and line[1] != "-m":
        assert (ROOT / line[1]).is_file()
    if line[:3] == ("python", "-m", "pytest"):
        assert all((ROOT / word).exists() for word in line[3:] if "/" in word)


# --- the page of commands ---------------------------------------------------------------------------------


def test_the_page_of_commands_is_what_is_printed() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python tests/command_page.py"


@pytest.mark.parametrize("words", [(), ("attempt",)])
def test_the_page_equals_a_real_run_in_80_columns(words: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "grader", *words, "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    title = " ".join(["mhaquiz", *words])
    assert f"## {title}\n\n```text\n{ran.stdout}```\n" in page()


# --- links and files --------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """What a heading is linked by."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("doc", DOCS)
def test_links_lead_somewhere(doc: str) -> None:
    links = [str(token.attrGet("href")) for token in tokens(doc) if token.type == "link_open"]
    for link in links:
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / doc).parent / file if file else ROOT / doc
        assert target.exists(), f"{doc} links to {link}"
        assert not anchor or anchor in anchors(target), f"{doc} links to {link}"


_PATH = re.compile(r"[\w.][\w./\-]*/[\w.\-]*(\.(py|yaml|md|json|toml|j2|txt))?")
# What an author's own files are called in the examples.
EXAMPLES = ("my-pack/", "problems/x", "B/")


@pytest.mark.parametrize("doc", DOCS)
def test_files_that_are_mentioned_exist(doc: str) -> None:
    for text in spans(doc):
        is_path = _PATH.fullmatch(text) and (text.endswith("/") or "." in text)
        if is_path and not text.startswith(EXAMPLES):
            places = [
                ROOT / text,
                ROOT / "grader" / text,
                (ROOT / doc).parent / text,
                ROOT / "problems" / "mha" / text,
            ]
            assert any(place.exists() for place in places), f"{doc} mentions {text}"


def test_no_document_names_a_machine() -> None:
    for doc in DOCS:
        text = (ROOT / doc).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(home|tmp|root|work|usr)/", text), doc


# --- tables -----------------------------------------------------------------------------------------------

Rows = list[list[str]]


def tables(doc: str) -> dict[str, list[Rows]]:
    """The tables under each heading: rows of cells, without the head."""
    found: dict[str, list[Rows]] = {}
    heading, inside = "", False
    blocks = MARKDOWN.parse((ROOT / doc).read_text(encoding="utf-8"))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.type == "heading_open" and following is not None:
            heading = following.content
        elif block.type in ("tbody_open", "tbody_close"):
            inside = block.type == "tbody_open"
            if inside:
                found.setdefault(heading, []).append([])
        elif block.type == "tr_open" and inside:
            found[heading][-1].append([])
        elif block.type == "td_open" and following is not None:
            found[heading][-1][-1].append(following.content)
    return found


def named(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def firsts(rows: Rows) -> list[str]:
    return [named(row[0])[0] for row in rows]


AUTHOR = tables("docs/author.md")
MODELS = (
    model.Problem, model.TensorInput, model.MemoryLayout, model.Case, model.ErrorCase, model.Step, model.Mistake,
    model.FollowUp, model.RealSystem, model.Reference, model.Limits, Budget,
)  # fmt: skip
# Told under "Other inputs" and "Checks".
ELSEWHERE = {"ModuleInput", "ListInput", "DictInput", "CheckUse"}


def test_every_model_has_a_section() -> None:
    defined = {
        name for name, one in vars(model).items()
        if isinstance(one, type) and issubclass(one, Model) and one is not Model
    }  # fmt: skip
    assert defined == {m.__name__ for m in MODELS if m is not Budget} | ELSEWHERE


@pytest.mark.parametrize("form", MODELS, ids=lambda m: m.__name__)
def test_the_fields_of_a_model(form: type[Model]) -> None:
    rows = AUTHOR[form.__name__][0]
    written = [(named(row[0])[0], row[1]) for row in rows]
    fields = form.model_fields.items()
    assert written == [(info.alias or name, "yes" if info.is_required() else "no") for name, info in fields]


def test_the_other_inputs() -> None:
    forms = (model.ListInput, model.DictInput, model.ModuleInput)
    keys = [info.alias or name for form in forms for name, info in form.model_fields.items()]
    assert firsts(AUTHOR["Other inputs"][0]) == keys
    module = get_args(model.ModuleInput.model_fields["torch_mha"].annotation)[0]
    assert all(key in AUTHOR["Other inputs"][0][-1][1] for key in get_args(module))


def test_the_value_kinds_and_their_options() -> None:
    from grader.values import FILLS

    rows = AUTHOR["Value kinds"][0]
    assert firsts(rows) == list(get_args(model.ValueKind))
    for kind, options in ((named(row[0])[0], named(row[1])) for row in rows):
        source = inspect.getsource(FILLS[kind])
        used = re.findall(r"wish\.(?:number|options\.get)\(\s*\"(\w+)\"", source)
        assert set(options) == set(used), kind


def test_the_words_to_choose_from() -> None:
    assert firsts(AUTHOR["Layouts"][0]) == list(get_args(model.LayoutName))
    assert firsts(AUTHOR["Step"][1]) == list(get_args(model.Step.model_fields["do"].annotation))
    assert firsts(AUTHOR["Budget"][1]) == list(get_args(Budget.model_fields["metric"].annotation))
    said = {row[0]: row[2] for row in AUTHOR["TensorInput"][0]}
    assert set(get_args(model.DType)) <= set(named(said["`dtype`"]))
    said = {row[0]: row[2] for row in AUTHOR["Problem"][0]}
    assert named(said["`dtypes`"]) == list(get_args(model.FloatName))


def test_the_checks() -> None:
    written = [(named(r[0])[0], r[1] == "yes", tuple(named(r[2]))) for r in AUTHOR["Checks"][0]]
    assert written == [(kind.name, kind.always, kind.waits_for) for kind in CHECKS.values()]
    assert set(REGISTERED) == set(CHECKS)


def test_the_options_of_the_checks() -> None:
    written = {(named(r[0])[0], named(r[1])[0], r[2]) for r in AUTHOR["Options of the checks"][0]}
    assert written == {
        (kind.name, name, "yes" if info.is_required() else "no")
        for kind in CHECKS.values()
        for name, info in kind.options.model_fields.items()
    }


def test_the_finding_codes() -> None:
    rows = AUTHOR["What a check can find"][0]
    assert {(named(r[0])[0], code) for r in rows for code in named(r[1])} == codes()


def test_the_exit_codes_formats_and_verdicts() -> None:
    learner = tables("docs/learner.md")
    exits = {name: code for name, code in vars(ExitCode).items() if name.isupper()}
    assert {named(r[1])[0]: int(r[0]) for r in learner["Exit codes"][0]} == exits
    option = next(p for p in COMMANDS["attempt"].load().params if p.name == "output_format")
    assert isinstance(option.type, click.Choice)
    assert set(firsts(learner["Output formats"][0])) == set(option.type.choices)
    assert set(firsts(learner["Reading the feedback"][0])) == {str(verdict) for verdict in Verdict}


def test_the_limits_are_the_defaults() -> None:
    from grader.host.limits import MIB, Limits

    said = {named(row[0])[0]: row[2] for row in AUTHOR["Limits"][0]}
    assert said["seconds"].endswith(f"; {Limits().wall_seconds:g}")
    assert said["memory_mb"].endswith(f"; {Limits().memory_bytes // MIB}")


# --- examples ---------------------------------------------------------------------------------------------


def feedback_blocks() -> tuple[list[str], list[list[str]]]:
    """The answers under "Reading the feedback", and the pieces of feedback that follow each."""
    sources: list[str] = []
    pieces: list[list[str]] = []
    heading = ""
    for token in tokens("docs/learner.md"):
        if token.type == "inline" and token.map and token.level == 1:
            heading = token.content if token.content == "Hints, solution, giving up" else heading
        if token.type == "fence" and not heading and token.info == "python":
            sources.append(token.content)
            pieces.append([])
        elif token.type == "fence" and not heading and token.info == "text":
            pieces[-1].append(token.content)
    return sources, pieces


def test_the_feedback_shown_to_learners_is_real(judge: Judge) -> None:
    from grader.api import task

    made = task(default_library(), "split-heads")
    sources, pieces = feedback_blocks()
    assert [len(each) for each in pieces] == [5, 4]
    for source, shown in zip(sources, pieces, strict=True):
        report = judge(made, source, file="split_heads.py")
        text = untimed(render_terminal(report, width=80, color=False, attempt=2))
        at = 0
        for piece in map(untimed, shown):
            assert piece in text[at:], piece
            at = text.index(piece, at) + len(piece)


def untimed(text: str) -> str:
    return re.sub(r"\d+ ms", "N ms", text)


def test_the_notebook_example_passes(engine: object, tmp_path: Path) -> None:
    from grader.api import check

    source = next(block for block in fences("docs/learner.md", "python") if "import check" in block)
    function = source[source.index("def ") : source.index("\n\n\nreport")]
    (tmp_path / "answer.py").write_text(function + "\n", encoding="utf-8")
    assert source.endswith('report = check("split-token", split_token)\n')
    assert check("split-token", tmp_path / "answer.py").verdict is Verdict.PASSED


def test_the_mistakes_shown_to_authors_are_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = scaffold("pair-up", "mine")
    broken = files.problem.replace("level: 1 ", "level: no ").replace("numbers: exact", "numbers: exat")
    for kind, name, text in (
        ("problems", "pair-up.yaml", broken.replace("  - gradient\n", "  - gradent\n")),
        ("solutions", "pair-up.py", files.solution),
    ):
        folder = tmp_path / "my-pack" / kind / "mine"
        folder.mkdir(parents=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, ["lint", "pair-up", "--problems", "my-pack"])
    assert ran.exit_code == ExitCode.BROKEN_PROBLEM
    assert ran.stdout in fences("docs/author.md", "text")
