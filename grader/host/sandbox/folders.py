"""Which files of the host a submission may read: the interpreter, its packages, the system's libraries.

And which of those it may not: the grader itself, every problem and every solution.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from grader.content import default_library
from grader.host.sandbox.interpreter import uses_user_site

_PACKAGE = Path(__file__).resolve().parents[2]
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Where a system keeps its programs and libraries; some are links into others."""
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
"""What the loader, a compiler and the clock need of /etc."""
PROCESSOR = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""Where libraries count processors and caches."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@cache
def readable() -> tuple[Path, ...]:
    """Folders of the interpreter, its packages and their libraries, outermost first, none inside another."""
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    packages = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    packages += [site.getusersitepackages()] if uses_user_site() else []
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = [Path(path) for path in [*prefixes, *packages, *libraries] if path and os.path.isdir(path)]
    return tuple(_outermost([*found, *(path.resolve() for path in found)]))


def hidden(more: Sequence[Path] = ()) -> list[Path]:
    """What no submission may read of those: this package, the problems and solutions of every pack, and `more`."""
    real = [folder.resolve() for folder in (*readable(), *map(Path, SYSTEM)) if folder.is_dir()]
    everything = _outermost(path.resolve() for path in [*_own(), *more])
    return [path for path in everything if any(path.is_relative_to(folder) for folder in real)]


@cache
def _own() -> tuple[Path, ...]:
    return (_PACKAGE, *default_library().folders())


def _outermost(paths: Iterable[Path]) -> list[Path]:
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if path.is_absolute() and not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept
