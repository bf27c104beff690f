"""Reads how much memory and how many processes a runner uses with all that it started, from /proc.

Where there is no /proc everything is zero: then only the limits that the system itself holds are held.
"""

from __future__ import annotations

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
