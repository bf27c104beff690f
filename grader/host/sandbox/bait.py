"""What the host lays out for probes to find: a secret file, sockets that listen, a process, names of real files.

Everything is made for one check and removed with it. What the probes need to know of it is in `facts`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.content import default_library
from grader.guest.family import descendants
from grader.host.engine import Engine
from grader.host.sandbox import folders
from grader.host.sandbox.interpreter import guest_environment

VARIABLE = "MHAQUIZ_CHECK_SECRET"
_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib")
_ENOUGH = 5
_REMOVE_SEGMENT = 0


class Bait:
    """A context manager around one check. `engine` runs the probes, `beside` another submission meanwhile."""

    def __init__(self, engine: Engine, beside: Engine, private: Sequence[Path] = ()) -> None:
        self.engine = engine
        self.token = f"mhaquiz-{secrets.token_hex(8)}"
        self.key = secrets.randbelow(1 << 30) + 1
        self._beside = beside
        self._private = private
        self._stack = ExitStack()

    def __enter__(self) -> Bait:
        with ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="mhaquiz-check-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.secret = self.folder / "secret"
            self.secret.write_text(self.token, encoding="utf-8")
            self._set_variable(stack)
            self._sockets = self._listen(stack)
            self.process = self._stand_in(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def facts(self) -> dict[str, Any]:
        """What a probe is told. The processes are those of the host, as the host counts them."""
        return {
            "TOKEN": self.token, "KEY": self.key, "SECRET": str(self.secret), "FOLDER": str(self.folder),
            "TEMP": tempfile.gettempdir(), "VARIABLES": sorted(guest_environment()), "BAIT": self.process.pid,
            "PIDS": [self.process.pid, os.getpid(), *self._processes()], "PLACES": list(self._places()),
            "SOLUTIONS": self._content("solutions"), "PROBLEMS": self._content("problems"),
            "GRADER": some(_PACKAGE, "*.py"), "PRIVATE": [p for f in self._private for p in some(f, "*")],
            "HOME": self._home(), "PROGRAMS": self._programs(), **self._sockets,
        }  # fmt: skip

    def revive(self) -> bool:
        """Starts the process anew; False when it was still there."""
        if self.process.poll() is None:
            return False
        self.process = self._stand_in(self._stack)
        return True

    def remove_files(self) -> list[str]:
        """Removes every file that bears this check's name anywhere a run may have left one; which there were."""
        found = [path for place in self._places() for path in Path(place).glob(f"{self.token}*")]
        for path in found:
            path.unlink(missing_ok=True)
        return [str(path) for path in found]

    def remove_segment(self) -> bool:
        """Removes the System V shared memory of this check's key; whether there was one."""
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "shmget"):
            return False
        segment = libc.shmget(self.key, 0, 0)
        return bool(segment != -1 and libc.shmctl(segment, _REMOVE_SEGMENT, None) == 0)

    def scratch_left(self) -> list[str]:
        """What is left in the folder of scratch folders, where that lies on the host."""
        enclosed = self.engine.zygotes[0].enclosed
        if enclosed is None or enclosed.on_host is None:
            return []
        return sorted(os.listdir(enclosed.on_host))

    def processes_left(self) -> set[int]:
        """What still runs below the zygote."""
        return descendants(self.engine.zygotes[0].pid)

    def _set_variable(self, stack: ExitStack) -> None:
        os.environ[VARIABLE] = self.token
        stack.callback(os.environ.pop, VARIABLE, None)

    def _listen(self, stack: ExitStack) -> dict[str, Any]:
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        tcp = stack.enter_context(socket.socket(socket.AF_INET, stream))
        udp = stack.enter_context(socket.socket(socket.AF_INET, datagram))
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        tcp.listen(8)
        paths = {"STREAM": str(self.folder / "stream"), "DATAGRAM": str(self.folder / "datagram")}
        for kind, path in zip((stream, datagram), paths.values(), strict=True):
            self._bound(stack, kind, path)
        abstract = ""
        if sys.platform == "linux":
            abstract = f"\0{self.token}"
            self._bound(stack, stream, abstract)
        return {"TCP": tcp.getsockname()[1], "UDP": udp.getsockname()[1], "ABSTRACT": abstract, **paths}

    def _bound(self, stack: ExitStack, kind: int, path: str) -> None:
        made = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        made.bind(path)
        if kind == socket.SOCK_STREAM:
            made.listen(8)

    def _stand_in(self, stack: ExitStack) -> subprocess.Popen[bytes]:
        """A process of this user's that sleeps, with the secret in its environment."""
        sleeps = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
        process = subprocess.Popen(sleeps, env={**os.environ, VARIABLE: self.token})
        stack.callback(_end, process)
        return process

    def _processes(self) -> list[int]:
        """The zygotes, and the runner beside."""
        zygotes = [zygote.pid for engine in (self.engine, self._beside) for zygote in engine.zygotes]
        runners = [pid for zygote in self._beside.zygotes if zygote.pid for pid in descendants(zygote.pid)]
        return [pid for pid in (*zygotes, *runners) if pid]

    def _places(self) -> list[str]:
        enclosed = self.engine.zygotes[0].enclosed
        scratch = [enclosed.on_host] if enclosed is not None and enclosed.on_host else []
        return [*dict.fromkeys([str(self.folder), tempfile.gettempdir(), *_PLACES, *scratch])]

    def _content(self, kind: str) -> list[str]:
        found = [
            path
            for folder in default_library().folders()
            if folder.name == kind
            for path in some(folder, "*.*")
        ]
        return found[:_ENOUGH]

    def _home(self) -> list[str]:
        """What lies in the home folder, but for the way to the interpreter and its packages."""
        home = Path.home()
        needed = [folder.resolve() for folder in folders.readable()]
        try:
            entries = sorted(home.iterdir())
        except OSError:
            return []
        return [str(path) for path in entries if not any(n.is_relative_to(path.resolve()) for n in needed)]

    def _programs(self) -> list[str]:
        """One file of each: the library, this guest, the interpreter, the system."""
        spec = importlib.util.find_spec("torch")
        enclosed = self.engine.zygotes[0].enclosed
        guest = (
            Path(enclosed.guest, "zygote.py") if enclosed is not None else _PACKAGE / "guest" / "zygote.py"
        )
        origin = [spec.origin] if spec is not None and spec.origin else []
        return [
            *origin,
            str(guest),
            os.path.realpath(sys.executable),
            os.path.realpath("/bin/sh"),
            "/etc/hostname",
        ]


def some(folder: Path, pattern: str) -> list[str]:
    """A few files below a folder, each with something to read in it."""
    if not folder.is_dir():
        return []
    found = (path for path in sorted(folder.rglob(pattern)) if path.is_file() and path.stat().st_size)
    return [str(path) for path, _ in zip(found, range(_ENOUGH), strict=False)]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
