"""Imports torch once, then forks one runner per submission. Runs no submission itself.

Started as a script with the number of its control socket, the folder for scratch folders, and the walls of its
runners (JSON, see walls.py). The host sends `run` (with a channel and an output descriptor) and `kill`; the zygote
answers `started` (or `failed`) and `ended`. It computes nothing: one multi-threaded operation here would make its
children hang.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib.util
import io
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Collection
from types import ModuleType
from typing import Any

_STRAYS_SECONDS = 2.0
# Taken before a submission loads: what it puts in their place changes nothing here.
_getpid, _exit = os.getpid, os._exit


def _load_package() -> ModuleType:
    """Loads the guest package from its folder without putting that folder on the import path."""
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "_guest", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["_guest"] = package
    spec.loader.exec_module(package)
    for name in ("wire", "harness", "trace", "walls", "confine", "family", "scratch"):
        importlib.import_module(f"_guest.{name}")
    return package


class Zygote:
    """The loop between the host and the runners."""

    def __init__(
        self, control: socket.socket, scratch: str, walls: dict[str, Any], guest: ModuleType
    ) -> None:
        self.control = control
        self.scratch = scratch
        self.walls = walls
        self.guest = guest
        self.runners: dict[int, tuple[int, str]] = {}
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write)

    def serve(self) -> None:
        """Serves until the host has gone; then nothing of any runner is left."""
        self.say({"ready": True, "pid": os.getpid()})
        while True:
            ready, _, _ = select.select([self.control.fileno(), self.wake_read], [], [])
            if self.wake_read in ready:
                os.read(self.wake_read, 4096)
                self.reap()
            if self.control.fileno() in ready and not self.obey():
                break
        for pid in list(self.runners):
            self.kill(pid)
        self.end_strays(kept=())
        self.guest.scratch.remove(self.scratch)

    def say(self, message: dict[str, Any]) -> None:
        """One message to the host; a host that has gone is noticed by the next read."""
        with contextlib.suppress(OSError):
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def obey(self) -> bool:
        """Carries out one command; False when the host has gone."""
        size = array.array("i").itemsize
        try:
            data, ancillary, _, _ = self.control.recvmsg(65536, socket.CMSG_SPACE(2 * size))
        except ConnectionError:
            return False
        if not data:
            return False
        descriptors = array.array("i")
        for _, _, chunk in ancillary:
            descriptors.frombytes(chunk[: len(chunk) - len(chunk) % size])
        # The host waits for `started` after each `run`, so descriptors belong to the one `run` among these lines.
        for line in data.splitlines():
            self.carry_out(json.loads(line), descriptors)
        return True

    def carry_out(self, command: dict[str, Any], descriptors: array.array[int]) -> None:
        """One command of the host."""
        if command["do"] == "run":
            self.run(command, descriptors[0], descriptors[1])
            return
        for pid, (number, _) in list(self.runners.items()):
            if number == command["number"]:
                self.kill(pid)

    def run(self, command: dict[str, Any], channel: int, output: int) -> None:
        """Forks a runner."""
        number = command["number"]
        try:
            scratch = tempfile.mkdtemp(dir=self.scratch)
            with self.guest.walls.own_processes(self.walls):
                pid = os.fork()
                if pid == 0:
                    _become_runner(self.guest, command, self.walls, scratch, channel, output)
        except OSError as error:
            self.say({"failed": number, "why": str(error)})
            return
        finally:
            os.close(channel)
            os.close(output)
        self.runners[pid] = (number, scratch)
        self.say({"started": number, "pid": pid})

    def kill(self, pid: int) -> None:
        """Kills a runner with everything in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)

    def reap(self) -> None:
        """Collects ended processes; what a runner left behind is ended with it."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self.runners:
                self.finish(pid, status, used.ru_utime + used.ru_stime)

    def finish(self, pid: int, status: int, cpu_seconds: float) -> None:
        """Tidies up after a runner that has ended, then tells the host."""
        number, scratch = self.runners.pop(pid)
        self.kill(pid)
        self.end_strays(kept=self.runners)
        self.guest.scratch.remove(scratch)
        self.sweep()
        self.say({"ended": number, "status": status, "cpu_seconds": cpu_seconds})

    def sweep(self) -> None:
        """Removes whatever lies beside the folders of runners: one may have moved its own."""
        kept = {os.path.basename(scratch) for _, scratch in self.runners.values()}
        for name in set(os.listdir(self.scratch)) - kept:
            self.guest.scratch.remove(os.path.join(self.scratch, name))

    def end_strays(self, kept: Collection[int]) -> None:
        """Ends every process below this one but for the runners to keep.

        A process whose parent ends becomes a child of the zygote, whatever session it has fled to. All are stopped
        before any is killed, so that none can fork away in between.
        """
        deadline = time.monotonic() + _STRAYS_SECONDS
        while time.monotonic() < deadline:
            strays: set[int] = set()
            while fresh := self.guest.family.descendants(os.getpid(), without=kept) - strays:
                _signal_all(fresh, signal.SIGSTOP)
                strays |= fresh
            if not strays:
                return
            _signal_all(strays, signal.SIGKILL)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.001)


def _signal_all(pids: Collection[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _become_subreaper() -> None:
    """Orphans of a runner become children of the zygote, so that none escapes by leaving its session."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _become_runner(
    guest: ModuleType,
    command: dict[str, Any],
    walls: dict[str, Any],
    scratch: str,
    channel: int,
    output: int,
) -> None:
    """In the fork: confine, serve the channel, leave. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        guest.confine.take_channel(channel, output)
        served = socket.socket(fileno=3)
        _confine(guest, command["limits"], walls, scratch, served)
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The runner is ended, not left: what it printed must not wait in a buffer.
            sys.stdout.reconfigure(line_buffering=True)
        os.environ.update(HOME=scratch, TMPDIR=scratch)
        tempfile.tempdir = scratch
        with guest.trace.following():
            _serve_channel(guest, served, scratch)
    except BaseException:
        _exit(70)
    _exit(0)


def _confine(
    guest: ModuleType, limits: dict[str, Any], walls: dict[str, Any], scratch: str, channel: socket.socket
) -> None:
    """Tells the host whether the runner is enclosed, before any of the submission is there. Raises OSError."""
    began = time.monotonic()
    try:
        guest.confine.confine(limits, walls, scratch)
    except Exception as error:
        channel.sendall(guest.wire.encode({"confined": False, "why": f"{type(error).__name__}: {error}"}))
        raise
    channel.sendall(guest.wire.encode({"confined": True, "seconds": time.monotonic() - began}))


def _serve_channel(guest: ModuleType, channel: socket.socket, scratch: str) -> None:
    """Answers one request per frame until the host closes the channel."""
    wire, harness = guest.wire, guest.harness
    assembler, owner = wire.Assembler(1 << 40), _getpid()
    submission = None
    for name in [name for name in sys.modules if name == "_guest" or name.startswith("_guest.")]:
        del sys.modules[name]
    while True:
        frame = wire.receive(channel, assembler)
        if frame is None:
            return
        reply: dict[str, Any] = {}
        buffers: list[bytearray] = []
        request = frame.header
        if request["do"] == "load":
            submission, reply = _load(harness, request, frame.buffers[0], scratch)
        elif request["do"] == "trial" and submission is not None:
            reply, buffers = harness.perform(submission, request, frame.buffers)
        elif request["do"] == "look" and submission is not None:
            reply = {"digests": harness.second_look(submission)}
        if _getpid() != owner:
            # A fork made by the submission came back here: only the runner itself may answer.
            _exit(0)
        # The token shows that the answer is to this question: what was written to the channel before has none.
        reply["token"] = request.get("token")
        channel.sendall(wire.encode(reply, buffers))


def _load(
    harness: ModuleType, request: dict[str, Any], source: bytearray, scratch: str
) -> tuple[Any, dict[str, Any]]:
    filename = os.path.join(scratch, request["filename"])
    with open(filename, "wb") as file:
        file.write(source)
    try:
        return harness.load(bytes(source), filename, request["entries"]), {"loaded": True}
    except harness.LoadFailure as failure:
        return None, {"loaded": False, "failure": failure.facts}


_REHEARSAL = b"""
def f(x, n):
    return x.unflatten(-1, (n, 2)).transpose(1, 2) * 1.0
"""


def _rehearse(guest: ModuleType) -> None:
    """Goes once through what every runner does, so that no runner pays for a first time.

    The library finds out here what the processor can do, which a runner may not look at. Nothing of a submission's,
    nothing large enough for a second thread, and no backward pass, which may start threads.
    """
    submission = guest.harness.load(_REHEARSAL, "rehearsal.py", ["f"])
    args = {"x": {"k": "t", "b": 0, "s": [1, 2, 4], "st": [8, 4, 1], "o": 0}, "n": {"k": "v", "v": 2}}
    steps = [{"do": "call", "name": "f", "args": ["x", "n"], "observe": True}]
    header = {"args": args, "steps": steps, "dtype": "float32", "max_bytes": 1 << 20}
    for extra in ({}, {"profile": True}, {"trace": True}):
        request = {**header, **extra, "buffers": [{"dtype": "float32", "numel": 8}]}
        reply, buffers = guest.harness.perform(submission, request, [bytes(32)])
        guest.wire.encode(reply, buffers)
    guest.harness.second_look(submission)


class _Hidden:
    """Keeps the grader and its solutions from being imported by name: a fence, not a wall.

    An installed mhaquiz lies on the same import path as torch. Only a sandbox hides the files themselves.
    """

    names = frozenset(["grader", "mhaquiz", "solutions", "problems"])

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuses the hidden names, and leaves every other one to the next finder."""
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    """Entry point of the script."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    _become_subreaper()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guest = _load_package()
        _rehearse(guest)
    walls = json.loads(sys.argv[3])
    guest.walls.prepare(walls)
    guest.trace.keep_watching()
    sys.meta_path.insert(0, _Hidden())
    gc.collect()
    gc.freeze()
    Zygote(control, sys.argv[2], walls, guest).serve()


if __name__ == "__main__":
    main()
