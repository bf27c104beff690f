"""What `import mhaquiz` offers: grade a file, a text or a function from Python or a notebook."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from grader.content import Library, default_library
from grader.errors import UsageError
from grader.host.engine import Engine
from grader.host.sandbox import choose
from grader.host.sandbox.plain import Plain
from grader.judge import Submission, Task
from grader.judge import grade as judge_grade
from grader.report import Report
from grader.spec.model import Problem
from grader.versions import Versions


@dataclass(frozen=True)
class ShownReport(Report):
    """A report that shows itself: as text when printed, as HTML in a notebook."""

    def __str__(self) -> str:
        from grader.render.terminal import render_terminal

        return render_terminal(self, width=100, color=False)

    def __repr__(self) -> str:
        return f"<{self.problem}: {self.verdict}, {self.score.passed} of {self.score.total} checks>"

    def _repr_html_(self) -> str:
        from grader.render.html import render_html

        return render_html(self)


def load_problem(problem: str, *, packs: Sequence[Path] = ()) -> Problem:
    """The problem with this id. Raises UsageError for an unknown id, ProblemFileError for a broken file."""
    return default_library(packs).load(problem)


def task(library: Library, problem: str) -> Task:
    """A problem made ready to judge by; made once as long as its files stay the same."""
    path, revision = str(library.solution_path(problem)), library.revision(problem)
    kept = _tasks.get(path)
    if kept is not None and kept.revision == revision:
        return kept
    loaded = library.load(problem)
    _tasks[path] = Task(loaded, Versions(loaded, library.solution_source(problem), path), revision)
    return _tasks[path]


_tasks: dict[str, Task] = {}


def grade(
    problem: str,
    source: str | bytes | Path,
    *,
    engine: Engine | None = None,
    seed: str | None = None,
    device: str = "cpu",
    packs: Sequence[Path] = (),
) -> Report:
    """Grades a file (a Path) or source text. Without an engine, a shared one is started and kept warm."""
    file = str(source) if isinstance(source, Path) else "submission.py"
    data = (
        _read(source) if isinstance(source, Path) else source.encode() if isinstance(source, str) else source
    )
    made = task(default_library(packs), problem)
    return judge_grade(
        made, Submission(data, file), engine or _shared_engine(device), seed=seed, device=device
    )


def check(problem: str, answer: str | Path | Callable[..., Any], *, seed: str | None = None) -> ShownReport:
    """Grades a path, or a function or class as it stands in a notebook or file.

    A function is sent with the functions, classes and imports of its module that it uses.
    """
    if callable(answer):
        entry = load_problem(problem).entry
        report = grade(problem, source_of(answer, entry), seed=seed)
    else:
        report = grade(problem, Path(answer), seed=seed)
    return ShownReport(**{field.name: getattr(report, field.name) for field in fields(Report)})


def source_of(answer: Callable[..., Any], entry: str) -> str:
    """The source of a function or class with what it uses, ready to be run on its own."""
    parts: dict[str, str] = {}
    _gather(answer, parts, set())
    name = getattr(answer, "__name__", entry)
    alias = "" if name == entry else f"\n{entry} = {name}\n"
    return "import torch\n" + "\n\n".join(parts.values()) + "\n" + alias


def _gather(value: Any, parts: dict[str, str], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    for name, used in _globals_of(value).items():
        if inspect.ismodule(used):
            parts[name] = f"import {used.__name__} as {name}"
        elif inspect.isfunction(used) or inspect.isclass(used):
            home = getattr(used, "__module__", "")
            if home == getattr(value, "__module__", None):
                _gather(used, parts, seen)
            else:
                parts[name] = f"from {home} import {used.__name__} as {name}"
        elif isinstance(used, (int, float, str, bool, type(None))):
            parts[name] = f"{name} = {used!r}"
    try:
        parts[getattr(value, "__name__", "answer")] = inspect.cleandoc("\n" + inspect.getsource(value))
    except (OSError, TypeError) as error:
        raise UsageError(
            "the source of this object cannot be read",
            cause=str(error),
            next_step="write it to a file and check the path",
        ) from None


def _globals_of(value: Any) -> dict[str, Any]:
    """The module-level names that a function or the methods of a class use."""
    functions = (
        [value] if inspect.isfunction(value) else [f for f in vars(value).values() if inspect.isfunction(f)]
    )
    used: dict[str, Any] = {}
    for function in functions:
        names = _names(function.__code__)
        used |= {name: function.__globals__[name] for name in names if name in function.__globals__}
    for base in getattr(value, "__bases__", ()):
        root = base.__module__.split(".")[0]
        if root != "builtins":
            used.setdefault(root, __import__(root))
    return used


def _names(code: Any) -> list[str]:
    inner = [name for const in code.co_consts if inspect.iscode(const) for name in _names(const)]
    return [*code.co_names, *inner]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read", where=str(path), cause=error.strerror or str(error)
        ) from None


_engines: dict[bool, Engine] = {}


def _shared_engine(device: str) -> Engine:
    """The warm engine: in the strictest sandbox here, but in none on a GPU, which no sandbox is proved to reach."""
    enclosed = device == "cpu"
    if enclosed not in _engines:
        engine = _engines[enclosed] = Engine(choose() if enclosed else Plain())
        engine.start()
        atexit.register(engine.close)
    return _engines[enclosed]
