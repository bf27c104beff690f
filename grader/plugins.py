"""Packs of problems: a folder of problems and a folder of solutions, built in, named or installed.

An installed package offers a pack by an entry point of the group `mhaquiz.problems`, whose value is a module
in whose folder `problems/` and `solutions/` lie:

    [project.entry-points."mhaquiz.problems"]
    my-pack = "my_package"

The module is located, never run. The built-in problems are a pack like any other.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from grader.errors import ExitCode, Fault, MhaquizError, UsageError

GROUP = "mhaquiz.problems"


class PackError(MhaquizError):
    """An installed pack does not hold what it promises."""

    fault = Fault.ENVIRONMENT
    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Pack:
    """Where one set of problems lies: `problems/<track>/<id>.yaml`, `solutions/<track>/<id>.py`."""

    name: str
    problems: Path
    solutions: Path


def pack_at(folder: Path, name: str = "") -> Pack:
    """The pack in a folder that holds `problems/` and `solutions/`, or the track folders themselves.

    Raises UsageError when the folder does not exist or holds neither.
    """
    name = name or folder.name
    if (folder / "problems").is_dir():
        return Pack(name, folder / "problems", folder / "solutions")
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder `{folder}`",
            where="--problems",
            next_step="name a folder that holds problems/<track>/<id>.yaml",
        )
    if not any(folder.glob("*/*.yaml")):
        raise UsageError(
            f"the folder `{folder}` holds no problems",
            where="--problems",
            cause="expected problems/<track>/<id>.yaml, or <track>/<id>.yaml, in it",
            next_step="`mhaquiz new ID` writes a first one",
        )
    beside = folder.name == "problems" and not (folder / "solutions").is_dir()
    return Pack(name, folder, (folder.parent if beside else folder) / "solutions")


def installed_packs(found: Iterable[EntryPoint] | None = None) -> list[Pack]:
    """The packs of installed packages, by name. Raises PackError where a module or its folder is missing."""
    points = _declared(tuple(sys.path)) if found is None else found
    return [_installed_pack(point) for point in sorted(points, key=lambda point: point.name)]


@cache
def _declared(import_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """What the packages on the import path declare: read once, since every package's metadata is opened for it."""
    return tuple(entry_points(group=GROUP))


def _installed_pack(point: EntryPoint) -> Pack:
    folder = _folder_of(point)
    if not (folder / "problems").is_dir():
        raise _broken(point, f"there is no folder `{folder / 'problems'}`")
    return Pack(point.name, folder / "problems", folder / "solutions")


def _folder_of(point: EntryPoint) -> Path:
    try:
        spec = importlib.util.find_spec(point.module)
    except (ImportError, ValueError) as error:
        raise _broken(point, str(error)) from None
    if spec is None:
        raise _broken(point, f"there is no module `{point.module}`")
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    if not spec.has_location or spec.origin is None:
        raise _broken(point, f"the module `{point.module}` lies in no folder")
    return Path(spec.origin).parent


def _broken(point: EntryPoint, cause: str) -> PackError:
    package = point.dist.name if point.dist is not None else point.module
    return PackError(
        f"the installed pack `{point.name}` cannot be used",
        where=f"entry point {GROUP}: {point.name} = {point.value}",
        cause=cause,
        next_step=f"reinstall or remove the package: pip uninstall {package}",
    )
