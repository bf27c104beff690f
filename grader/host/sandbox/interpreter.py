"""How the zygote's interpreter is called: its arguments, its environment, its descriptors."""

from __future__ import annotations

import importlib.util
import json
import os
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GUEST = Path(__file__).resolve().parents[2] / "guest"
"""The folder of the code that runs beside a submission."""
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
    # No pool of compilers beside the submission: its threads and processes would be taken for the submission's.
    fixed["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    # Who runs it is nobody's business, but libraries that name a cache after the user must find a name.
    return {**kept, "LANG": "C.UTF-8", "USER": "submission", "LOGNAME": "submission", **fixed}


def python(guest: Path, control: int, scratch: str, walls: dict[str, Any]) -> list[str]:
    """The command that starts the zygote: see grader/guest/zygote.py."""
    script = str(guest / "zygote.py")
    return [sys.executable, *_isolation(), script, str(control), scratch, json.dumps(walls)]


def started(command: Sequence[str], control: int) -> subprocess.Popen[bytes]:
    """Runs a command that starts a zygote, in a session of its own and with no descriptor but the control socket."""
    return subprocess.Popen(
        command,
        env=guest_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[control],
        start_new_session=True,
        close_fds=True,
    )


def uses_user_site() -> bool:
    """Whether the guest sees the user's own packages: only where torch is one of them."""
    return bool(site.ENABLE_USER_SITE) and _torch_is_in(site.getusersitepackages())


def _isolation() -> list[str]:
    """No environment variables, no current folder."""
    return ["-E", "-P"] if uses_user_site() else ["-I"]


def _torch_is_in(folder: str) -> bool:
    spec = importlib.util.find_spec("torch")
    return spec is not None and str(spec.origin).startswith(folder + os.sep)
