"""Finding problems: packs, order, revisions, stray files, and what is said when something is not there."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.content import Library, default_library, in_order
from grader.errors import ExitCode, Fault, ProblemFileError, UsageError
from grader.plugins import GROUP, Pack, PackError, installed_packs, pack_at
from grader.spec.load import Summary

ROOT = Path(__file__).parents[1]

HEADER = """\
format: 1
id: {id}
title: {id}
track: {track}
level: {level}
minutes: 5
requires: [{requires}]
summary: About {id}.
entry: f
statement: Do it.
"""


def add(
    folder: Path, track: str, problem: str, level: int = 1, requires: str = "", solution: str = "x = 1\n"
) -> None:
    """Write a problem and its solution into a pack."""
    for kind, ending, text in (
        ("problems", "yaml", HEADER.format(id=problem, track=track, level=level, requires=requires)),
        ("solutions", "py", solution),
    ):
        path = folder / kind / track / f"{problem}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def library(*folders: Path) -> Library:
    return Library(tuple(pack_at(folder) for folder in folders), ROOT / "templates")


def test_the_built_in_problems_are_found_and_nothing_is_stray() -> None:
    built_in = default_library()
    assert "split-heads" in built_in.ids()
    assert [summary.id for summary in built_in.problems() if summary.id == "split-heads"] == ["split-heads"]
    assert built_in.load("split-heads").entry == "split_heads"
    assert "def reference" in built_in.solution_source("split-heads")
    assert built_in.templates().name == "templates"
    assert built_in.packs[0].name == "mhaquiz"


def test_a_wheel_keeps_its_content_inside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "grader"
    for source in [*(ROOT / "grader").glob("*.py"), *(ROOT / "grader" / "spec").glob("*.py")]:
        target = package / source.relative_to(ROOT / "grader")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    (package / "__init__.py").write_text("")
    add(package / "_content", "mha", "packed")
    code = (
        "from grader.content import default_library as found; "
        "print(found().ids(), found().templates().parent.name, found().stray_files())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['packed'] _content []\n"


# --- order ------------------------------------------------------------------------------------------------


def summary(problem: str, track: str = "mha", level: int = 1, requires: tuple[str, ...] = ()) -> Summary:
    return Summary(problem, problem, track, level, 5, "", requires, Path(problem), "f")


def test_tracks_come_in_the_order_of_learning_and_others_after() -> None:
    tracks = ["zebra", "debug", "variants", "alpha", "flash", "cache", "positions", "gqa", "mha"]
    ordered = in_order([summary(track, track) for track in tracks])
    assert [one.track for one in ordered] == [
        "mha", "gqa", "positions", "cache", "flash", "variants", "debug", "alpha", "zebra",
    ]  # fmt: skip


def test_what_is_required_comes_first_then_the_easier_then_the_name() -> None:
    given_ = [
        summary("d"),
        summary("c", requires=("hard",)),
        summary("b", level=2),
        summary("hard", level=5),
        summary("a", requires=("gone",)),
    ]
    assert [one.id for one in in_order(given_)] == ["a", "d", "b", "hard", "c"]


names = st.sampled_from("abcdef")
summaries = st.dictionaries(names, st.tuples(st.integers(1, 3), st.frozensets(names, max_size=3)), max_size=6)


@settings(deadline=None)
@given(summaries, st.randoms())
def test_the_order_does_not_depend_on_where_it_started(
    drawn: dict[str, tuple[int, frozenset[str]]], draw: object
) -> None:
    made = [
        summary(name, level=level, requires=tuple(sorted(needs))) for name, (level, needs) in drawn.items()
    ]
    ordered = in_order(made)
    assert sorted(one.id for one in ordered) == sorted(drawn)
    draw.shuffle(made)  # type: ignore[attr-defined]
    assert in_order(made) == ordered


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_a_chain_comes_in_its_order_whatever_the_levels(levels: list[int]) -> None:
    chain = [summary(f"n{i}", level=level, requires=(f"n{i - 1}",)) for i, level in enumerate(levels)]
    assert in_order(chain[::-1]) == chain


# --- packs ------------------------------------------------------------------------------------------------


def test_a_pack_adds_its_problems(tmp_path: Path) -> None:
    add(tmp_path / "mine", "mha", "extra")
    found = default_library([tmp_path / "mine"])
    assert found.path_of("extra") == tmp_path / "mine" / "problems" / "mha" / "extra.yaml"
    assert found.solution_path("extra") == tmp_path / "mine" / "solutions" / "mha" / "extra.py"
    assert "split-heads" in found.ids()


def test_a_folder_of_tracks_is_a_pack_with_solutions_inside_or_beside(tmp_path: Path) -> None:
    add(tmp_path, "mha", "extra")
    beside = library(tmp_path / "problems")
    assert beside.solution_path("extra") == tmp_path / "solutions" / "mha" / "extra.py"
    assert beside.stray_files() == []
    flat = tmp_path / "flat"
    (tmp_path / "problems").rename(flat)
    (tmp_path / "solutions").rename(flat / "solutions")
    inside = library(flat)
    assert inside.ids() == ["extra"]
    assert inside.solution_path("extra").is_file()
    assert inside.stray_files() == []


def test_a_folder_named_twice_counts_once() -> None:
    assert default_library([ROOT, ROOT / "problems"]).packs == default_library().packs


def test_an_id_in_two_packs_names_both_files(tmp_path: Path) -> None:
    add(tmp_path / "one", "mha", "same")
    add(tmp_path / "two", "gqa", "same")
    with pytest.raises(UsageError) as caught:
        library(tmp_path / "one", tmp_path / "two").ids()
    first, second = tmp_path / "one/problems/mha/same.yaml", tmp_path / "two/problems/gqa/same.yaml"
    assert caught.value.what == f"the problem `same` is there twice: {first} and {second}"
    assert caught.value.cause == "the packs `one` and `two` share an id"
    assert caught.value.next_step == "rename one of the files and its `id`"


@pytest.mark.parametrize(
    ("make", "what", "next_step"),
    [
        (False, "there is no folder `{}`", "name a folder that holds problems/<track>/<id>.yaml"),
        (True, "the folder `{}` holds no problems", "`mhaquiz new ID` writes a first one"),
    ],
)
def test_a_folder_that_is_no_pack(make: bool, what: str, next_step: str, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    if make:
        folder.mkdir()
    with pytest.raises(UsageError) as caught:
        default_library([folder])
    assert (caught.value.what, caught.value.next_step) == (what.format(folder), next_step)
    assert caught.value.where == "--problems"


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """What pip leaves behind for a package with an entry point."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_an_installed_pack_is_found_and_its_code_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "quiz_pack_a"
    add(package, "mha", "installed")
    (package / "__init__.py").write_text("raise SystemExit('this must not run')\n")
    _install(tmp_path, monkeypatch, "pack-a", "quiz_pack_a")
    assert default_library().path_of("installed") == package / "problems" / "mha" / "installed.yaml"
    assert [pack.name for pack in installed_packs()] == ["pack-a"]


def test_a_module_that_is_one_file_offers_the_folder_it_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, "mha", "installed")
    (tmp_path / "quiz_pack_b.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    (pack,) = installed_packs([EntryPoint("b", "quiz_pack_b", GROUP)])
    assert pack == Pack("b", tmp_path / "problems", tmp_path / "solutions")


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("no_such_module_x", "there is no module `no_such_module_x`"),
        ("no_such_module_x.inner", "No module named 'no_such_module_x'"),
        ("sys", "the module `sys` lies in no folder"),
    ],
)
def test_a_broken_installed_pack_says_which_and_what_to_do(value: str, cause: str) -> None:
    with pytest.raises(PackError) as caught:
        installed_packs([EntryPoint("bad", value, GROUP)])
    error = caught.value
    assert error.what == "the installed pack `bad` cannot be used"
    assert error.where == f"entry point mhaquiz.problems: bad = {value}"
    assert error.cause == cause
    assert error.next_step == f"reinstall or remove the package: pip uninstall {value}"
    assert (error.fault, error.exit_code) == (Fault.ENVIRONMENT, ExitCode.USAGE)


def test_an_installed_pack_without_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "quiz_pack_c").mkdir()
    (tmp_path / "quiz_pack_c" / "__init__.py").write_text("")
    _install(tmp_path, monkeypatch, "pack-c", "quiz_pack_c")
    with pytest.raises(PackError) as caught:
        installed_packs()
    assert caught.value.cause == f"there is no folder `{tmp_path / 'quiz_pack_c' / 'problems'}`"
    assert caught.value.next_step == "reinstall or remove the package: pip uninstall pack-c"


# --- what is asked of a library ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["path_of", "solution_path", "load", "solution_source", "revision"])
def test_an_unknown_id_offers_the_one_that_was_meant(method: str) -> None:
    with pytest.raises(UsageError) as caught:
        getattr(default_library(), method)("splitheads")
    assert caught.value.what == "there is no problem `splitheads`, did you mean `split-heads`?"
    assert caught.value.next_step == "`mhaquiz list` shows every problem"
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_revision_follows_both_files(tmp_path: Path) -> None:
    add(tmp_path, "mha", "one")
    first = library(tmp_path).revision("one")
    assert len(first) == 12
    assert library(tmp_path).revision("one") == first
    add(tmp_path, "mha", "one", solution="x = 2\n")
    second = library(tmp_path).revision("one")
    add(tmp_path, "mha", "one", level=2)
    third = library(tmp_path).revision("one")
    (tmp_path / "solutions" / "mha" / "one.py").unlink()
    assert len({first, second, third, library(tmp_path).revision("one")}) == 4


def test_a_solution_that_cannot_be_read(tmp_path: Path) -> None:
    add(tmp_path, "mha", "one")
    path = tmp_path / "solutions" / "mha" / "one.py"
    path.write_bytes(b"\xff")
    with pytest.raises(ProblemFileError) as caught:
        library(tmp_path).solution_source("one")
    assert str(caught.value.mistakes[0]) == f"{path}:1:1: cannot read the solution file of `one`: not UTF-8"
    path.unlink()
    with pytest.raises(ProblemFileError) as caught:
        library(tmp_path).solution_source("one")
    assert (
        caught.value.mistakes[0].message
        == "cannot read the solution file of `one`: No such file or directory"
    )


def test_broken_headers_are_told_of_every_file(tmp_path: Path) -> None:
    for name in ("good", "bad", "worse"):
        add(tmp_path, "mha", name)
    for name in ("bad", "worse"):
        (tmp_path / "problems" / "mha" / f"{name}.yaml").write_text("id: [\n")
    with pytest.raises(ProblemFileError) as caught:
        library(tmp_path).problems()
    assert [Path(mistake.file).stem for mistake in caught.value.mistakes] == ["bad", "worse"]
    assert library(tmp_path).ids() == ["bad", "good", "worse"]


def test_stray_files(tmp_path: Path) -> None:
    for name in ("good", "unsolved"):
        add(tmp_path, "mha", name)
    (tmp_path / "solutions" / "mha" / "unsolved.py").unlink()
    kept = [
        "solutions/kernels/softmax.py",
        "solutions/mha/__pycache__/good.pyc",
        "problems/mha/.good.yaml.swp",
    ]
    stray = [
        "problems/README.md",
        "problems/mha/Good.yaml",
        "problems/mha/deep/down.yaml",
        "problems/mha/good.yml",
        "problems/mha/unsolved.yaml",
        "solutions/kernels/deep/x.py",
        "solutions/loose.py",
        "solutions/mha/notes.txt",
        "solutions/mha/orphan.py",
    ]
    for name in kept + stray:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = library(tmp_path).stray_files()
    assert [str(path.relative_to(tmp_path)) for path in found] == stray
    assert library(tmp_path).ids() == ["good", "unsolved"]


def test_solutions_import_nothing_that_a_user_may_lack() -> None:
    """A solution file is loaded for every grade: what is not torch is imported inside the version that uses it."""
    library = default_library()
    for problem in library.ids():
        for node in ast.parse(library.solution_source(problem)).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                )
                roots = {name.split(".")[0] for name in names}
                assert roots <= {"torch", *sys.stdlib_module_names}, f"{problem}: {roots}"
