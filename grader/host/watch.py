"""How much memory, how many processes and how many files a runner uses with all that it started.

Memory and processes come from /proc; where there is none they are zero, and only the limits hold that the system
itself holds.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from dataclasses import dataclass

from grader.guest.family import descendants

# Pages of files (the library's code among them) belong to nobody: only what a process itself filled is counted.
_COUNTED = ("RssAnon:", "RssShmem:")


@dataclass(frozen=True)
class Usage:
    """Resident bytes, and the number of processes."""

    memory_bytes: int = 0
    processes: int = 0


def usage(zygote: int, shared_bytes: int = 0) -> Usage:
    """What the processes below a zygote use together, each less the `shared_bytes` that it was forked with.

    A process that left its session or whose parent has ended is still below the zygote.
    """
    sizes = [_resident(pid) for pid in descendants(zygote)]
    there = [size for size in sizes if size is not None]
    return Usage(sum(max(size - shared_bytes, 0) for size in there), len(there))


def _resident(pid: int) -> int | None:
    """Bytes of memory that a process fills, or None when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = [line.split() for line in file]
    except OSError:
        return None
    return sum(int(field[1]) * 1024 for field in fields if field and field[0] in _COUNTED)


class Locked(Exception):
    """A folder that is closed, or too deep to be named, so that nobody can tell how much is in it."""


def written(folder: str, most: int) -> tuple[int, int]:
    """Bytes and number of the files below a folder; counts no further than `most`, follows no link. Raises Locked."""
    size = count = 0
    waiting = [folder]
    while waiting and count <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in itertools.islice(entries, most + 1):
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += _size(entry)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.ENAMETOOLONG):
                raise Locked from error
    return size, count


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        # Gone meanwhile, so it takes nothing.
        return 0


def unnamed(zygote: int) -> int:
    """Bytes of files that the processes below a zygote hold open and that have no name any more."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in descendants(zygote):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                        sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())
