"""No walls, only limits: for a learner's own code. Named `plain` in every report."""

from __future__ import annotations

import os
import subprocess
import sys

# What a library needs to start at all, or picks kernels and devices by. Nothing else of the user's environment.
_KEPT = (
    "PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE", "TRITON_INTERPRET",
)  # fmt: skip


def guest_environment() -> dict[str, str]:
    """The environment of a zygote: no secrets, one thread (several would hang a fork)."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


class Plain:
    """Starts the zygote as an ordinary child process in a session of its own."""

    name = "plain"
    holds_strangers = False

    def available(self) -> str | None:
        """Needs fork, so Linux or macOS."""
        if hasattr(os, "fork"):
            return None
        return "this system cannot fork; run mhaquiz on Linux, macOS or in WSL"

    def start(self, script: str, control: int) -> subprocess.Popen[bytes]:
        """The interpreter in isolated mode: no user site, no current folder on the import path."""
        return subprocess.Popen(
            [sys.executable, "-I", "-X", "faulthandler=0", script, str(control)],
            env=guest_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[control],
            start_new_session=True,
            close_fds=True,
        )
