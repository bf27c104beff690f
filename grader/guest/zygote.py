"""Imports torch once, then forks one runner per submission. Runs no submission itself.

Started as a script with the number of its control socket. The host sends `run` (with a channel and an
output descriptor) and `kill`; the zygote answers `started` and `ended`. It computes nothing: one
multi-threaded operation here would make its children hang.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from types import ModuleType
from typing import Any


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
    for name in ("wire", "harness", "confine"):
        importlib.import_module(f"_guest.{name}")
    return package


class Zygote:
    """The loop between the host and the runners."""

    def __init__(self, control: socket.socket, guest: ModuleType) -> None:
        self.control = control
        self.guest = guest
        self.runners: dict[int, tuple[int, str]] = {}
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write)

    def serve(self) -> None:
        """Serves until the host has gone; then every runner is killed."""
        self.say({"ready": True})
        while True:
            ready, _, _ = select.select([self.control, self.wake_read], [], [])
            if self.wake_read in ready:
                os.read(self.wake_read, 4096)
                self.reap()
            if self.control in ready and not self.obey():
                break
        for pid in list(self.runners):
            self.kill(pid)

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
        scratch = tempfile.mkdtemp(prefix="mhaquiz-")
        pid = os.fork()
        if pid == 0:
            _become_runner(self.guest, command, scratch, channel, output)
        os.close(channel)
        os.close(output)
        self.runners[pid] = (command["number"], scratch)
        self.say({"started": command["number"], "pid": pid})

    def kill(self, pid: int) -> None:
        """Kills a runner with everything in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)

    def reap(self) -> None:
        """Collects ended processes; what a runner left behind is killed with it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self.runners:
                number, scratch = self.runners.pop(pid)
                self.kill(pid)
                shutil.rmtree(scratch, ignore_errors=True)
                self.say({"ended": number, "status": status})
        if not self.runners:
            _kill_orphans()


def _become_subreaper() -> None:
    """Orphans of a runner become children of the zygote, so that none escapes by leaving its session."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _kill_orphans() -> None:
    me = str(os.getpid())
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    stat = open(f"/proc/{name}/stat").read()  # noqa: SIM115
                    if stat.rsplit(")", 1)[1].split()[1] == me:
                        os.kill(int(name), signal.SIGKILL)


def _become_runner(guest: ModuleType, command: dict[str, Any], scratch: str, channel: int, output: int) -> None:
    """In the fork: confine, serve the channel, leave. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        guest.confine.confine(command["limits"], scratch, channel, output)
        os.environ.update(HOME=scratch, TMPDIR=scratch)
        tempfile.tempdir = scratch
        _serve_channel(guest, socket.socket(fileno=3), scratch)
    except BaseException:
        os._exit(70)
    os._exit(0)


def _serve_channel(guest: ModuleType, channel: socket.socket, scratch: str) -> None:
    """Answers one request per frame until the host closes the channel."""
    wire, harness = guest.wire, guest.harness
    assembler, owner = wire.Assembler(1 << 40), os.getpid()
    submission = None
    for name in [name for name in sys.modules if name == "_guest" or name.startswith("_guest.")]:
        del sys.modules[name]
    while True:
        frame = wire.receive(channel, assembler)
        if frame is None:
            return
        reply, buffers = {}, []
        request = frame.header
        if request["do"] == "load":
            submission, reply = _load(harness, request, frame.buffers[0], scratch)
        elif request["do"] == "trial" and submission is not None:
            reply, buffers = harness.perform(submission, request, frame.buffers)
        elif request["do"] == "look" and submission is not None:
            reply = {"digests": harness.second_look(submission)}
        if os.getpid() != owner:
            # A fork made by the submission came back here: only the runner itself may answer.
            os._exit(0)
        channel.sendall(wire.encode(reply, buffers))


def _load(harness: ModuleType, request: dict[str, Any], source: bytearray, scratch: str) -> tuple[Any, dict[str, Any]]:
    filename = os.path.join(scratch, request["filename"])
    with open(filename, "wb") as file:
        file.write(source)
    try:
        return harness.load(bytes(source), filename, request["entries"]), {"loaded": True}
    except harness.LoadFailure as failure:
        return None, {"loaded": False, "failure": failure.facts}


def main() -> None:
    """Entry point of the script."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    _become_subreaper()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guest = _load_package()
    gc.collect()
    gc.freeze()
    Zygote(control, guest).serve()


if __name__ == "__main__":
    main()
