"""Who imports whom: the directions of docs/architecture.md, read off the source of every module.

A module may import what its row allows and nothing else of grader. What is imported inside a function counts as
well, except where a row says so; `if TYPE_CHECKING` counts for nothing, since nothing is loaded.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "grader"

# Groups of modules, from the ground up. A group is named by its folder or by its modules.
GROUPS: dict[str, set[str]] = {
    "errors": {"errors"},
    "version": {"version"},
    "report": {"report"},
    "spec": {"spec"},
    "content": {"content", "plugins"},
    "scaffold": {"scaffold"},
    "guest": {"guest"},
    "host": {"host"},
    "numerics": {"numerics"},
    "inputs": {"inputs", "values", "layouts", "plan"},
    "observe": {"observe"},
    "checks": {"checks"},
    "versions": {"versions"},
    "fold": {"fold"},
    "wording": {"wording"},
    "mistakes": {"mistakes"},
    "explain": {"explain", "provenance", "snippet"},
    "judge": {"judge", "batch"},
    "render": {"render"},
    "store": {"store"},
    "progress": {"progress"},
    "api": {"api"},
    "gate": {"gate"},
    "cli": {"cli", "__main__"},
    "package": {"__init__"},
}
# What each group may import beside itself. The order is the direction: nothing above imports what is below.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "report": set(),
    "guest": set(),
    "spec": {"errors"},
    "content": {"errors", "spec"},
    "scaffold": set(),
    "numerics": set(),
    # content: what a sandbox hides from submissions.
    "host": {"errors", "report", "guest", "content"},
    "observe": {"report", "guest"},
    # observe: what a plan hands cotangents for.
    "inputs": {"errors", "spec", "guest", "observe"},
    "checks": {"report", "spec", "numerics", "observe", "inputs", "guest"},
    "versions": {"errors", "spec", "guest", "inputs", "observe"},
    "fold": {"errors", "report", "spec", "inputs", "observe", "checks", "versions"},
    "wording": {"report"},
    "mistakes": {"report", "spec", "numerics", "inputs", "observe", "versions", "fold"},
    "explain": {
        "report", "spec", "guest", "host", "inputs", "observe", "checks", "versions", "fold", "wording",
    },
    "judge": {
        "errors", "version", "report", "spec", "guest", "host", "inputs", "observe", "versions", "fold",
        "mistakes", "explain",
    },
    "render": {"errors", "report", "content"},
    "store": {"errors", "report"},
    "progress": {"spec", "store"},
    "api": {"errors", "report", "spec", "content", "host", "versions", "judge", "render"},
    "gate": {"errors", "report", "spec", "content", "host", "inputs", "versions", "judge", "api"},
    "cli": {
        "errors", "version", "report", "spec", "content", "scaffold", "host", "judge", "render", "store", "progress",
        "api", "gate",
    },
    "package": set(),  # it names api, report and version, and loads them when they are used
}  # fmt: skip
# Single modules that a group may not use beyond these names of another group.
ONLY_NAMES = {
    ("inputs", "observe"): {"Observation"},
    ("checks", "guest"): {"to_bytes"},
    ("explain", "host"): {"Run"},
    ("explain", "guest"): {"source_lines"},
}
NO_TORCH = (
    "report",
    "errors",
    "content",
    "plugins",
    "scaffold",
    "spec",
    "render",
    "store",
    "progress",
    "version",
    "cli",
)


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_content" not in path.parts)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def group_of(module: str) -> str:
    top = module.split(".")[0] or "__init__"
    return next(group for group, members in GROUPS.items() if top in members)


def walked(tree: ast.AST, *, inside: bool = True) -> Iterator[ast.AST]:
    """Every node that is loaded; without function bodies where `inside` is false."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if not inside and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        yield child
        yield from walked(child, inside=inside)


def imports(path: Path, *, inside: bool = True) -> Iterator[tuple[str, str]]:
    """Every (module, name) that a file imports; relative ones spelt out."""
    package = ["grader", *path.relative_to(PACKAGE).parts[:-1]]
    for node in walked(ast.parse(path.read_text(encoding="utf-8")), inside=inside):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                is_module = (ROOT / Path(*module.split("."), alias.name)).with_suffix(".py").is_file()
                yield (f"{module}.{alias.name}", "") if is_module else (module, alias.name)


def of_grader(path: Path) -> Iterator[tuple[str, str]]:
    for module, name in imports(path):
        if module == "grader" or module.startswith("grader."):
            yield module.removeprefix("grader").removeprefix(".") or "__init__", name


def test_every_module_has_a_group() -> None:
    assert set(GROUPS) == set(ALLOWED)
    for path in modules():
        assert group_of(name_of(path))


def test_the_table_has_no_circle() -> None:
    left = {group: set(allowed) for group, allowed in ALLOWED.items()}
    while left:
        free = {group for group, needs in left.items() if not needs & set(left)}
        assert free, f"these import each other: {sorted(left)}"
        left = {group: needs for group, needs in left.items() if group not in free}


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_imports_what_its_group_may(path: Path) -> None:
    mine = group_of(name_of(path))
    for module, name in of_grader(path):
        other = group_of(module)
        assert other == mine or other in ALLOWED[mine], f"{name_of(path)} imports {module}"
        names = ONLY_NAMES.get((mine, other))
        assert names is None or name in names, f"{name_of(path)} imports {name} of {module}"


def test_the_table_allows_nothing_that_is_not_used() -> None:
    used: dict[str, set[str]] = {group: set() for group in GROUPS}
    for path in modules():
        used[group_of(name_of(path))] |= {group_of(module) for module, _ in of_grader(path)}
    idle = {group: ALLOWED[group] - used[group] for group in GROUPS if ALLOWED[group] - used[group]}
    assert idle == {}


def test_the_guest_is_torch_and_the_standard_library() -> None:
    for path in (PACKAGE / "guest").glob("*.py"):
        for module, _ in imports(path):
            top = module.split(".")[0]
            inner = module.startswith("grader.guest")
            known = inner or top == "torch" or top in sys.stdlib_module_names
            # The one wall that needs a package of its own.
            assert known or (path.name, top) == ("walls.py", "sandlock"), f"{path.name} imports {module}"


def test_checks_see_no_process_file_or_renderer() -> None:
    for path in (PACKAGE / "checks").glob("*.py"):
        tops = {module.split(".")[0] for module, _ in imports(path)}
        assert not tops & {"os", "io", "sys", "pathlib", "subprocess", "socket", "tempfile", "random", "time"}


@pytest.mark.parametrize("path", [p for p in modules() if name_of(p).split(".")[0] in NO_TORCH], ids=name_of)
def test_no_torch_when_it_is_loaded(path: Path) -> None:
    heavy = {"torch", "numpy"}
    assert not {module.split(".")[0] for module, _ in imports(path, inside=False)} & heavy


def loads_torch(code: str) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('TORCH', 'torch' in sys.modules)"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1] == "TORCH True"


LIGHT = [name_of(p) for p in modules() if name_of(p).split(".")[0] in NO_TORCH]


def test_what_needs_no_torch_loads_none() -> None:
    names = [name.removesuffix(".__init__") for name in LIGHT]
    assert not loads_torch("\n".join(f"import grader.{name}" for name in names) + "\nimport grader, mhaquiz")


def test_the_list_of_problems_loads_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MHAQUIZ_HOME", str(tmp_path))
    run = "from grader.cli.main import cli\ntry:\n    cli(['list'])\nexcept SystemExit as end:\n    assert not end.code"
    assert not loads_torch(run)
    assert loads_torch("import grader.judge"), "the test can tell"


def test_modules_say_what_they_are_for() -> None:
    silent = [
        name_of(path) for path in modules()
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]  # fmt: skip
    assert silent == []


def test_no_module_is_longer_than_500_lines() -> None:
    long = {name_of(p): n for p in modules() if (n := len(p.read_text(encoding="utf-8").splitlines())) > 500}
    # wording: one small function for each finding, in one place. harness: all that runs beside a submission is
    # loaded before it, as one module whose names are captured at once.
    assert set(long) <= {"wording", "guest.harness"}, long
