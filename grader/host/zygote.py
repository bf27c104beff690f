"""The host's end of one zygote: starts it, has it fork runners, notices when it has gone.

One runner at a time. It moves commands and descriptors; what is said to a runner is runner.py's business.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from grader.errors import GraderError
from grader.guest import scratch
from grader.guest.family import descendants
from grader.host.limits import Limits
from grader.host.runner import ANSWER_SECONDS, GRACE_SECONDS, Ended, Gone, Runner
from grader.host.sandbox.base import Enclosed, Sandbox
from grader.host.watch import usage

_START_SECONDS = 120.0
_CREDENTIALS = struct.Struct("3i")


class Zygote:
    """A zygote process, started when it is first needed. Not for use by several threads at once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.enclosed: Enclosed | None = None
        self.pid = 0
        """As the host counts, once it is ready."""
        self.crash = ""
        """The last words of one that ended by itself."""
        self._control: socket.socket | None = None
        self._lines = bytearray()
        self._heard: list[dict[str, Any]] = []
        self._number = 0
        self._ending: Runner | None = None

    @property
    def scratch(self) -> str | None:
        """The folder of its runners' scratch folders, where that lies on the host."""
        return self.enclosed.on_host if self.enclosed is not None else None

    def start(self) -> None:
        """Starts the process and returns at once: its import of torch overlaps the caller's work."""
        if self.enclosed is not None:
            return
        reason = self.sandbox.available()
        if reason is not None:
            raise GraderError("no submission can be run here", cause=reason, next_step="mhaquiz doctor")
        ours, theirs = socket.socketpair()
        try:
            if hasattr(socket, "SO_PASSCRED"):
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.enclosed = self.sandbox.start(theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._control = ours
        self.pid = 0
        self._lines.clear()
        self._heard.clear()

    def close(self) -> None:
        """Ends the zygote and its runner, and removes their folder."""
        self._ending = None
        enclosed, self.enclosed = self.enclosed, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if enclosed is None:
            return
        process = enclosed.process
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()
        if enclosed.on_host is not None:
            scratch.remove(enclosed.on_host)

    def kill(self) -> None:
        """Ends the process now, from any thread; whoever uses it finds it gone."""
        enclosed = self.enclosed
        if enclosed is not None:
            with contextlib.suppress(ProcessLookupError):
                enclosed.process.kill()

    def begin(self, limits: Limits) -> Runner:
        """A fresh runner. Raises Gone when the zygote has ended, GraderError when no runner can be had."""
        self.settle()
        self.start()
        if not self.pid:
            self._wait_ready()
        self._number += 1
        ours, theirs = socket.socketpair()
        output, guest_output = os.pipe()
        try:
            os.set_blocking(output, False)
            command = {"do": "run", "number": self._number, "limits": limits.for_guest()}
            self._send(command, [theirs.fileno(), guest_output])
            pid = self._started()
        except BaseException as error:
            ours.close()
            os.close(output)
            if isinstance(error, Gone):
                self.bury(None)
            raise
        finally:
            theirs.close()
            os.close(guest_output)
        return Runner(self, self._number, ours, output, pid, limits, usage(self.pid))

    def end(self, runner: Runner) -> None:
        """Has a runner ended, with all that it started; `settle` waits until that is done."""
        runner.close()
        try:
            self._send({"do": "kill", "number": runner.number})
        except Gone:
            self.bury(runner)
        else:
            self._ending = runner

    def settle(self) -> None:
        """Waits until nothing of the last runner is left. What came of its run stands, whatever happens here."""
        runner, self._ending = self._ending, None
        if runner is None:
            return
        try:
            self.await_end(runner, ANSWER_SECONDS)
        except Gone:
            self.bury(runner)

    def fileno(self) -> int:
        """The control socket, for a selector."""
        assert self._control is not None
        return self._control.fileno()

    def listen(self, deadline: float) -> None:
        """Takes in what the zygote says next; waits for it until the deadline. Raises Gone."""
        if self._control is None:
            raise Gone
        self._control.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            data, ancillary, _, _ = self._control.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._lines += data
        *whole, rest = bytes(self._lines).split(b"\n")
        self._lines = bytearray(rest)
        self._heard += map(json.loads, whole)
        if not self.pid:
            self.pid = _sender(ancillary)

    def has_ended(self, runner: Runner) -> bool:
        """Whether the zygote has said so; then the runner knows how."""
        for message in self._heard:
            if message.get("ended") == runner.number:
                runner.ended = Ended(int(message["status"]), float(message["cpu_seconds"]))
        return runner.ended is not None

    def await_end(self, runner: Runner, seconds: float, *, must: bool = True) -> None:
        """Waits until the zygote says that a runner has ended. Raises Gone when it `must` and does not."""
        deadline = time.monotonic() + seconds
        while not self.has_ended(runner):
            try:
                self.listen(deadline)
            except Gone as error:
                if must or not isinstance(error.__cause__, TimeoutError):
                    raise
                return

    def bury(self, runner: Runner | None) -> None:
        """Ends what is left of a zygote that has gone or does not answer; keeps its last words if it crashed."""
        if self.enclosed is None:
            return
        process = self.enclosed.process
        left = descendants(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its socket closes a moment before it has ended.
            process.wait(timeout=GRACE_SECONDS)
        by_itself = (process.returncode or 0) > 0
        words = self._last_words()
        self.crash = words if by_itself else ""
        self.close()
        if runner is not None and self.sandbox.host_pids and runner.pid > 1:
            # It dies with the zygote, but what it has started does not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(runner.pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _send(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._control is None:
            raise Gone
        data = json.dumps(command).encode() + b"\n"
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self._control.settimeout(ANSWER_SECONDS)
        try:
            self._control.sendmsg([data], extra)
        except OSError as error:
            raise Gone from error

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        try:
            while not any("ready" in message for message in self._heard):
                self.listen(deadline)
        except Gone:
            raise self._did_not_start() from None
        if not self.pid:
            self.pid = int(next(message["pid"] for message in self._heard if "ready" in message))
        self._heard.clear()

    def _started(self) -> int:
        """The pid, as the zygote counts, of the runner that was just asked for."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            for message in self._heard:
                if message.get("failed") == self._number:
                    raise GraderError(
                        "no process could be started for the submission",
                        cause=str(message.get("why")),
                        next_step="end other programs, then run the same command again",
                    )
                if message.get("started") == self._number:
                    self._heard.clear()
                    return int(message["pid"])
            self.listen(deadline)

    def _did_not_start(self) -> GraderError:
        text = self._last_words()
        self.close()
        return GraderError(
            "the grader's runner did not start",
            cause=text or "its process ended without a word",
            next_step="mhaquiz doctor",
        )

    def _last_words(self) -> str:
        """What the zygote wrote to its error stream. Ends it."""
        process = self.enclosed.process if self.enclosed is not None else None
        if process is None or process.stderr is None:
            return ""
        process.kill()
        process.wait()
        os.set_blocking(process.stderr.fileno(), False)
        return (process.stderr.read() or b"").decode(errors="replace")[-2000:].strip()


def _sender(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The pid of the process that sent a message, as the host counts; 0 where the system does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == getattr(socket, "SCM_CREDENTIALS", None):
            return int(_CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0])
    return 0
