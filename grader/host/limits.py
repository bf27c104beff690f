"""How much one submission may use. Start-up of the grader is never charged to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Limits of one run: seconds, bytes and counts."""

    wall_seconds: float = 10.0
    cpu_seconds: int = 20
    memory_bytes: int = 1024 * MIB
    processes: int = 64
    output_bytes: int = 8 * MIB
    file_bytes: int = 256 * MIB
    scratch_bytes: int = 512 * MIB
    scratch_files: int = 20_000
    reply_bytes: int = 512 * MIB
    kept_output: int = 64 * 1024

    def for_guest(self) -> dict[str, Any]:
        """What the runner applies to itself."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "file_bytes": self.file_bytes,
            "scratch_bytes": self.scratch_bytes,
            "scratch_files": self.scratch_files,
        }
