"""Where problems, solutions and templates lie: the one module that knows.

In a wheel they are in grader/_content; in a checkout or an editable install beside the grader package.
A library is several packs seen as one. Names of files are the ids, so that a broken file still has one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from grader.errors import Mistake, ProblemFileError, UsageError
from grader.plugins import Pack, installed_packs, pack_at
from grader.spec.load import Summary, load_problem, load_summary
from grader.spec.suggest import did_you_mean

if TYPE_CHECKING:
    from grader.spec.model import Problem

TRACKS = ("mha", "gqa", "positions", "cache", "flash", "variants", "debug")
BUILT_IN = "mhaquiz"

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KERNELS = "kernels"


@dataclass(frozen=True)
class Located:
    """A problem's files; the solution need not exist."""

    id: str
    pack: str
    path: Path
    solution: Path


@dataclass(frozen=True)
class Library:
    """Every problem there is, in whichever pack. Files are looked up once; their contents are read anew."""

    packs: tuple[Pack, ...]
    templates_folder: Path

    def problems(self) -> list[Summary]:
        """A summary of every problem, in the order of learning.

        Raises ProblemFileError with the mistakes of every file whose header cannot be read.
        """
        summaries: list[Summary] = []
        mistakes: list[Mistake] = []
        for located in self._index.values():
            try:
                summaries.append(load_summary(located.path))
            except ProblemFileError as error:
                mistakes += error.mistakes
        if mistakes:
            raise ProblemFileError(mistakes)
        return in_order(summaries)

    def ids(self) -> list[str]:
        """Every id, sorted; no file is read."""
        return sorted(self._index)

    def path_of(self, problem: str) -> Path:
        """The problem's file. Raises UsageError for an unknown id, here and in the methods below."""
        return self._find(problem).path

    def solution_path(self, problem: str) -> Path:
        """The file of the problem's reference and other versions; `stray_files` tells when it is missing."""
        return self._find(problem).solution

    def load(self, problem: str) -> Problem:
        """The problem. Raises ProblemFileError with every mistake in its file."""
        return load_problem(self.path_of(problem))

    def solution_source(self, problem: str) -> str:
        """The text of the solution file. Raises ProblemFileError when it cannot be read."""
        path = self.solution_path(problem)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
            message = f"cannot read the solution file of `{problem}`: {reason}"
            raise ProblemFileError([Mistake(str(path), 1, 1, message)]) from None

    def revision(self, problem: str) -> str:
        """A short hash of the problem file and the solution file: what a grade was given against."""
        located = self._find(problem)
        digest = hashlib.sha256()
        for path in (located.path, located.solution):
            content = path.read_bytes() if path.is_file() else b""
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.hexdigest()[:12]

    def folders(self) -> tuple[Path, ...]:
        """Every folder that holds problems, solutions or templates: what no submission may read."""
        packs = [folder for pack in self.packs for folder in (pack.problems, pack.solutions)]
        return (*packs, self.templates_folder)

    def templates(self) -> Path:
        """The folder of jinja2 templates."""
        return self.templates_folder

    def stray_files(self) -> list[Path]:
        """Files that belong nowhere, solutions without a problem and problems without a solution."""
        return sorted({path for pack in self.packs for path in _strays(pack)})

    def _find(self, problem: str) -> Located:
        if problem not in self._index:
            raise UsageError(
                f"there is no problem `{problem}`{did_you_mean(problem, self._index)}",
                where=problem,
                next_step="`mhaquiz list` shows every problem",
            )
        return self._index[problem]

    @cached_property
    def _index(self) -> dict[str, Located]:
        index: dict[str, Located] = {}
        for pack in self.packs:
            for located in _located(pack):
                if located.id in index:
                    raise _in_two_places(index[located.id], located)
                index[located.id] = located
        return index


def default_library(extra: Sequence[Path] = ()) -> Library:
    """The built-in problems, the packs of installed packages and the packs in the folders `extra`.

    Raises UsageError for a folder without problems, PackError for a broken installed pack.
    """
    root = _content_root()
    built_in = Pack(BUILT_IN, root / "problems", root / "solutions")
    packs = [built_in, *installed_packs(), *(pack_at(Path(folder)) for folder in extra)]
    apart = {pack.problems.resolve(): pack for pack in reversed(packs)}  # a folder named twice counts once
    return Library(tuple(reversed(apart.values())), root / "templates")


def _content_root() -> Path:
    package = Path(__file__).resolve().parent
    packed = package / "_content"
    return packed if packed.is_dir() else package.parent


# --- files of a pack --------------------------------------------------------------------------------------


def _located(pack: Pack) -> Iterator[Located]:
    for path in _problem_files(pack):
        solution = pack.solutions / path.parent.name / f"{path.stem}.py"
        yield Located(path.stem, pack.name, path, solution)


def _problem_files(pack: Pack) -> list[Path]:
    return [path for path in _files(pack.problems, pack) if _is_problem(path, pack)]


def _files(folder: Path, pack: Pack) -> list[Path]:
    """Every file under `folder`, without hidden files, caches and solutions that lie inside it."""
    found = [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]
    inside = pack.solutions if pack.solutions.is_relative_to(folder) and folder != pack.solutions else None
    kept = (path for path in found if inside is None or not path.is_relative_to(inside))
    return sorted(path for path in kept if not _is_hidden(path.relative_to(folder)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _is_problem(path: Path, pack: Pack) -> bool:
    inner = path.relative_to(pack.problems)
    return len(inner.parts) == 2 and inner.suffix == ".yaml" and _ID.fullmatch(inner.stem) is not None


def _strays(pack: Pack) -> Iterator[Path]:
    problems = _problem_files(pack)
    yield from set(_files(pack.problems, pack)) - set(problems)
    wanted = {located.solution: located.path for located in _located(pack)}
    yield from (path for solution, path in wanted.items() if not solution.is_file())
    for path in _files(pack.solutions, pack):
        inner = path.relative_to(pack.solutions)
        is_kernel = len(inner.parts) == 2 and inner.parts[0] == _KERNELS and inner.suffix == ".py"
        if path not in wanted and not is_kernel:
            yield path


def _in_two_places(first: Located, second: Located) -> UsageError:
    return UsageError(
        f"the problem `{first.id}` is there twice: {first.path} and {second.path}",
        where=str(second.path),
        cause=""
        if first.pack == second.pack
        else f"the packs `{first.pack}` and `{second.pack}` share an id",
        next_step="rename one of the files and its `id`",
    )


# --- order ------------------------------------------------------------------------------------------------


def in_order(summaries: Sequence[Summary]) -> list[Summary]:
    """By track, and in a track what is required first, then by level, then by id."""
    tracks: dict[str, list[Summary]] = {}
    for summary in summaries:
        tracks.setdefault(summary.track, []).append(summary)
    return [
        summary for track in sorted(tracks, key=_track_rank) for summary in _required_first(tracks[track])
    ]


def _track_rank(track: str) -> tuple[int, str]:
    return (TRACKS.index(track) if track in TRACKS else len(TRACKS), track)


def _required_first(summaries: list[Summary]) -> Iterator[Summary]:
    """Each as soon as what it requires has come; in a circle, the easiest first."""
    waiting = {summary.id: summary for summary in sorted(summaries, key=lambda one: (one.level, one.id))}
    while waiting:
        ready = (one for one in waiting.values() if not any(name in waiting for name in one.requires))
        following = next(ready, next(iter(waiting.values())))
        yield waiting.pop(following.id)
