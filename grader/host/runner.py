"""The host's end of one runner: asks and answers, with the limits watched all the while.

Whatever a runner does to its channel ends in a `Stop`, which says what came of the run, never in an exception of
ours.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.errors import GraderError
from grader.guest import wire
from grader.guest.wire import Request
from grader.host.limits import Limits
from grader.host.watch import Locked, Usage, unnamed, usage, written
from grader.report import Outcome

if TYPE_CHECKING:
    from grader.host.zygote import Zygote

ANSWER_SECONDS = 10.0
# A process that has closed its channel is normally about to end.
GRACE_SECONDS = 1.0
_BROKEN_HARNESS = 70
_POLL_SECONDS = 0.02
# Counting files takes longer than a look at processes.
_POLLS_OF_FILES = 10


class Gone(Exception):
    """The zygote has ended, or does not answer."""


class NotBegun(Gone):
    """The runner was ended from outside before it was enclosed, so before anything of the submission's ran."""


class Stop(Exception):
    """The run ends here with this outcome."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


@dataclass(frozen=True)
class Ended:
    """How a runner's process ended: the status of wait, and the seconds of processor time."""

    status: int
    cpu_seconds: float


class Runner:
    """One runner, from its fork to its end."""

    def __init__(
        self,
        zygote: Zygote,
        number: int,
        channel: socket.socket,
        output: int,
        pid: int,
        limits: Limits,
        baseline: Usage,
    ) -> None:
        self.number = number
        self.pid = pid
        self.limits = limits
        self.captured = bytearray()
        self.confine_seconds = 0.0
        self.ended: Ended | None = None
        self._zygote = zygote
        self._channel = channel
        self._output = output
        self._baseline = baseline
        self._started = time.monotonic()
        self._next_watch = self._started + _POLL_SECONDS
        self._written = 0
        self._watches = 0
        self._confined = False
        self._assembler = wire.Assembler(limits.reply_bytes)
        self._selector = selectors.DefaultSelector()
        channel.setblocking(False)
        for source in (channel, output, zygote):
            self._selector.register(source, selectors.EVENT_READ)

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Closes the host's ends of its channel and its output."""
        self._selector.close()
        self._channel.close()
        os.close(self._output)

    def ask(self, request: Request, meanwhile: Callable[[], object] = lambda: None) -> wire.Frame:
        """Sends one request and waits for its reply. `meanwhile` is called once it is sent. Raises Stop, Gone."""
        token = secrets.token_hex(8)
        header = {"do": "trial", **request.header, "token": token}
        pending = self._push(memoryview(wire.encode(header, request.buffers)))
        if pending:
            self._selector.modify(self._channel, selectors.EVENT_READ | selectors.EVENT_WRITE)
        else:
            meanwhile()
        frame: wire.Frame | None = None
        while True:
            for key, events in self._selector.select(_POLL_SECONDS):
                if key.fd == self._output:
                    if not self._drain():
                        self._selector.unregister(self._output)
                elif key.fileobj is self._zygote:
                    self._zygote.listen(time.monotonic())
                else:
                    if events & selectors.EVENT_WRITE:
                        pending = self._push(pending)
                        if not pending:
                            self._selector.modify(self._channel, selectors.EVENT_READ)
                            meanwhile()
                    frame = self._pull() if events & selectors.EVENT_READ else frame
            if time.monotonic() >= self._next_watch:
                self._watch()
                self._next_watch = time.monotonic() + _POLL_SECONDS
            if frame is not None:
                return self._checked(frame, token)
            if self._zygote.has_ended(self):
                # A process of its own may hold the channel open: no answer will come.
                raise self._gone()

    def _checked(self, frame: wire.Frame, token: str) -> wire.Frame:
        """The frame, if it answers what was asked."""
        self._drain()
        if frame.header.get("token") != token:
            raise Stop(Outcome.REFUSED, "an answer came to a question that was not asked")
        return frame

    def _push(self, pending: memoryview) -> memoryview:
        try:
            return pending[self._channel.send(pending) :]
        except BlockingIOError:
            return pending
        except OSError:
            raise self._gone() from None

    def _pull(self) -> wire.Frame | None:
        try:
            data = self._channel.recv(1 << 20)
            if not data:
                raise self._gone()
            self._assembler.feed(data)
            return self._next_frame()
        except BlockingIOError:
            return None
        except wire.Malformed as error:
            raise Stop(Outcome.REFUSED, str(error)) from None
        except OSError:
            raise self._gone() from None

    def _next_frame(self) -> wire.Frame | None:
        """The next frame, past the first one, in which the runner says that it is enclosed."""
        frame = self._assembler.next()
        if frame is None or self._confined:
            return frame
        if frame.header.get("confined") is not True:
            raise not_confined(str(frame.header.get("why")))
        self._confined = True
        self.confine_seconds = float(frame.header["seconds"])
        return self._assembler.next()

    def _gone(self) -> Stop:
        """Why a runner ended before it answered.

        Raises NotBegun or GraderError when none of the submission had run yet.
        """
        self._drain()
        self._zygote.await_end(self, GRACE_SECONDS, must=False)
        if not self._confined and not self._said_confined():
            if self.ended is not None and os.WIFSIGNALED(self.ended.status):
                raise NotBegun
            raise not_confined("its process ended before it was")
        if self.ended is None:
            return Stop(Outcome.KILLED, "it closed the channel to the grader")
        if os.WIFSIGNALED(self.ended.status):
            return self._signalled(os.WTERMSIG(self.ended.status), self.ended.cpu_seconds)
        status = os.WEXITSTATUS(self.ended.status)
        if status == _BROKEN_HARNESS:
            return Stop(Outcome.KILLED, "it broke the part of the grader that runs beside it")
        return Stop(Outcome.KILLED, f"its process ended itself with status {status}")

    def _said_confined(self) -> bool:
        """Whether its first word is still to be read."""
        try:
            self._assembler.feed(self._channel.recv(1 << 16))
            self._next_frame()
        except (OSError, wire.Malformed):
            return self._confined
        return self._confined

    def _signalled(self, number: int, cpu_seconds: float) -> Stop:
        """What the signal that ended a runner says."""
        limits = self.limits
        # The first process of a family of its own is not stopped by the gentler signal, only by the last one.
        spent = number == signal.SIGKILL and cpu_seconds >= limits.cpu_seconds
        if number == signal.SIGXCPU or spent:
            return Stop(Outcome.TIME_LIMIT, f"it took more than {limits.cpu_seconds} s of processor time")
        if number == signal.SIGXFSZ:
            return Stop(Outcome.OUTPUT_LIMIT, "it wrote too large a file")
        known = {entry.value: entry.name for entry in signal.Signals}
        return Stop(Outcome.KILLED, f"its process ended with signal {known.get(number, number)}")

    def _drain(self) -> bool:
        """Takes what the submission printed; False at the end of the stream."""
        while True:
            try:
                data = os.read(self._output, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._written += len(data)
            room = self.limits.kept_output - len(self.captured)
            self.captured += data[: max(room, 0)]
            if self._written > self.limits.output_bytes:
                limit = self.limits.output_bytes // (1024 * 1024)
                raise Stop(Outcome.OUTPUT_LIMIT, f"it printed more than {limit} MiB")

    def _watch(self) -> None:
        limits = self.limits
        if self.age > limits.wall_seconds:
            raise Stop(Outcome.TIME_LIMIT, f"it took more than {limits.wall_seconds:g} s")
        now = usage(self._zygote.pid, self._baseline.memory_bytes)
        if now.processes > limits.processes:
            raise Stop(Outcome.PROCESS_LIMIT, f"it started more than {limits.processes} processes")
        if now.memory_bytes > limits.memory_bytes:
            raise Stop(
                Outcome.MEMORY_LIMIT, f"it took more than {limits.memory_bytes // 2**20} MiB of memory"
            )
        self._watches += 1
        if self._zygote.scratch is not None and self._watches % _POLLS_OF_FILES == 0:
            self._watch_files(self._zygote.scratch)

    def _watch_files(self, folder: str) -> None:
        """Where the scratch folder lies on the host: no more in it than a sized one would hold."""
        try:
            size, count = written(folder, self.limits.scratch_files)
        except Locked:
            raise Stop(
                Outcome.OUTPUT_LIMIT,
                "its folders are locked or too deep, so that its files cannot be counted",
            ) from None
        size += unnamed(self._zygote.pid)
        if size > self.limits.scratch_bytes:
            limit = self.limits.scratch_bytes // 2**20
            raise Stop(Outcome.OUTPUT_LIMIT, f"it wrote more than {limit} MiB of files")
        if count > self.limits.scratch_files:
            raise Stop(Outcome.OUTPUT_LIMIT, f"it made more than {self.limits.scratch_files} files")


def not_confined(why: str) -> GraderError:
    """A wall could not be raised: never the submission's fault."""
    return GraderError(
        "the runner could not be enclosed, so the submission was not run",
        cause=why,
        next_step="mhaquiz sandbox check",
    )
