"""No walls, only limits: for a learner's own code. Named `plain` in every report."""

from __future__ import annotations

import importlib.util
import os
import site
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
    # Without the script compiler a scripted function is the Python function: its names, lines and exceptions show.
    fixed = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTORCH_JIT": "0"}
    return {**kept, "LANG": "C.UTF-8", **fixed}


def _isolation() -> list[str]:
    """No environment variables, no current folder; the user's own packages only where torch is one of them."""
    return ["-E", "-P"] if site.ENABLE_USER_SITE and _torch_is_in(site.getusersitepackages()) else ["-I"]


def _torch_is_in(folder: str) -> bool:
    spec = importlib.util.find_spec("torch")
    return spec is not None and str(spec.origin).startswith(folder + os.sep)


class Plain:
    """Starts the zygote as an ordinary child process in a session of its own."""

    name = "plain"
    holds_strangers = False
    host_pids = True

    def available(self) -> str | None:
        """Needs fork, so Linux or macOS."""
        if hasattr(os, "fork"):
            return None
        return "this system cannot fork; run mhaquiz on Linux, macOS or in WSL"

    def start(self, script: str, control: int, scratch: str) -> subprocess.Popen[bytes]:
        """The interpreter without the user's settings and without the current folder on the import path."""
        return subprocess.Popen(
            [sys.executable, *_isolation(), script, str(control), scratch],
            env=guest_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[control],
            start_new_session=True,
            close_fds=True,
        )
