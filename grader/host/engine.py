"""Runs submissions: a warm zygote, one forked runner per submission, one request per go-token.

The engine moves bytes and enforces limits. It knows no problem and judges nothing; whatever a runner does to
its channel ends in an outcome of the run, never in an exception of ours.
"""

from __future__ import annotations

import array
import json
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.errors import GraderError
from grader.guest import wire
from grader.host.limits import Limits
from grader.host.sandbox.base import Sandbox
from grader.host.sandbox.plain import Plain
from grader.host.watch import Usage, usage
from grader.report import Outcome

_START_SECONDS = 120.0
_POLL_SECONDS = 0.02
_SCRIPT = Path(__file__).parent.parent / "guest" / "zygote.py"


@dataclass(frozen=True)
class Request:
    """One request to a runner: its header and its raw buffers."""

    header: dict[str, Any]
    buffers: Sequence[bytes | bytearray] = ()


@dataclass(frozen=True)
class Run:
    """What came of one submission's run.

    `frames` holds the replies in order; a run that ended early has fewer than there were requests.
    `load_failure` is the harness's account when the submission could not be loaded.
    """

    outcome: Outcome
    frames: tuple[wire.Frame, ...] = ()
    load_failure: dict[str, Any] | None = None
    digests: tuple[tuple[str, ...], ...] | None = None
    stdout: str = ""
    detail: str = ""
    seconds: float = 0.0


class _Stop(Exception):
    """The run ends here with this outcome."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


@dataclass
class _Runner:
    """The host's end of one runner."""

    number: int
    channel: socket.socket
    output: int
    pid: int
    limits: Limits
    started: float
    baseline: Usage
    assembler: wire.Assembler
    captured: bytearray = field(default_factory=bytearray)
    written: int = 0
    status: int | None = None


class Engine:
    """A zygote and its runners; a context manager. Not for use by several threads at once."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox or Plain()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lines = bytearray()
        self._ready = False
        self._number = 0

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the zygote and returns at once: its import of torch overlaps the caller's work."""
        if self._process is not None:
            return
        reason = self.sandbox.available()
        if reason is not None:
            raise GraderError("no submission can be run here", cause=reason, next_step="mhaquiz doctor")
        ours, theirs = socket.socketpair()
        self._process = self.sandbox.start(str(_SCRIPT), theirs.fileno())
        theirs.close()
        self._control = ours
        self._ready = False
        self._lines.clear()

    def close(self) -> None:
        """Ends the zygote and every runner."""
        process, self._process = self._process, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if process is None:
            return
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    def run(
        self,
        source: bytes,
        filename: str,
        entries: Sequence[str],
        requests: Iterable[Request],
        limits: Limits | None = None,
    ) -> Run:
        """Runs one submission through the requests, in order, in a runner of its own."""
        runner = self._begin(limits or Limits())
        frames: list[wire.Frame] = []
        try:
            return self._converse(runner, source, filename, entries, requests, frames)
        except _Stop as stop:
            return Run(
                stop.outcome, tuple(frames), stdout=self._stdout(runner), detail=stop.detail, seconds=_age(runner)
            )
        finally:
            self._end(runner)

    def _converse(
        self,
        runner: _Runner,
        source: bytes,
        filename: str,
        entries: Sequence[str],
        requests: Iterable[Request],
        frames: list[wire.Frame],
    ) -> Run:
        load = {"do": "load", "filename": filename, "entries": list(entries)}
        loaded = self._ask(runner, Request(load, [source])).header
        if loaded.get("loaded") is not True:
            failure = loaded.get("failure")
            account = failure if isinstance(failure, dict) else {"code": "unreadable", "message": ""}
            return Run(Outcome.RAISED, (), account, stdout=self._stdout(runner), seconds=_age(runner))
        for request in requests:
            frames.append(self._ask(runner, request))
        look = self._ask(runner, Request({"do": "look"})).header.get("digests")
        digests = tuple(tuple(map(str, group)) for group in look) if isinstance(look, list) else None
        return Run(
            Outcome.RETURNED, tuple(frames), digests=digests, stdout=self._stdout(runner), seconds=_age(runner)
        )

    def _begin(self, limits: Limits) -> _Runner:
        self.start()
        self._wait_ready()
        self._number += 1
        ours, theirs = socket.socketpair()
        output, guest_output = os.pipe()
        os.set_blocking(output, False)
        command = {"do": "run", "number": self._number, "limits": limits.for_guest()}
        try:
            self._send(command, [theirs.fileno(), guest_output])
        finally:
            theirs.close()
            os.close(guest_output)
        pid = self._hear("started", self._number)["pid"]
        ours.setblocking(False)
        assembler = wire.Assembler(limits.reply_bytes)
        return _Runner(self._number, ours, output, pid, limits, time.monotonic(), usage(pid), assembler)

    def _end(self, runner: _Runner) -> None:
        runner.channel.close()
        os.close(runner.output)
        self._send({"do": "kill", "number": runner.number})
        if runner.status is None:
            self._hear("ended", runner.number)

    def _ask(self, runner: _Runner, request: Request) -> wire.Frame:
        """Sends one request and waits for its reply, watching the limits all the while. Raises _Stop."""
        pending = memoryview(wire.encode({"do": "trial", **request.header}, request.buffers))
        with selectors.DefaultSelector() as selector:
            selector.register(runner.channel, selectors.EVENT_READ | selectors.EVENT_WRITE)
            selector.register(runner.output, selectors.EVENT_READ)
            next_watch = time.monotonic() + _POLL_SECONDS
            while True:
                for key, events in selector.select(_POLL_SECONDS):
                    if key.fd == runner.output:
                        if not self._drain(runner):
                            selector.unregister(runner.output)
                        continue
                    if events & selectors.EVENT_WRITE:
                        pending = self._push(runner, pending)
                        if not pending:
                            selector.modify(runner.channel, selectors.EVENT_READ)
                    if events & selectors.EVENT_READ:
                        frame = self._pull(runner)
                        if frame is not None:
                            self._drain(runner)
                            return frame
                if time.monotonic() >= next_watch:
                    self._watch(runner)
                    next_watch = time.monotonic() + _POLL_SECONDS

    def _push(self, runner: _Runner, pending: memoryview) -> memoryview:
        try:
            return pending[runner.channel.send(pending) :]
        except BlockingIOError:
            return pending
        except OSError:
            raise self._gone(runner) from None

    def _pull(self, runner: _Runner) -> wire.Frame | None:
        try:
            data = runner.channel.recv(1 << 20)
            if not data:
                raise self._gone(runner)
            runner.assembler.feed(data)
            return runner.assembler.next()
        except BlockingIOError:
            return None
        except wire.Malformed as error:
            raise _Stop(Outcome.REFUSED, str(error)) from None
        except OSError:
            raise self._gone(runner) from None

    def _gone(self, runner: _Runner) -> _Stop:
        """Why a runner ended before it answered."""
        self._drain(runner)
        self._send({"do": "kill", "number": runner.number})
        runner.status = int(self._hear("ended", runner.number)["status"])
        if os.WIFSIGNALED(runner.status):
            number = os.WTERMSIG(runner.status)
            if number == signal.SIGXCPU:
                return _Stop(Outcome.TIME_LIMIT, f"more than {runner.limits.cpu_seconds} s of processor time")
            if number == signal.SIGXFSZ:
                return _Stop(Outcome.OUTPUT_LIMIT, "it wrote too large a file")
            return _Stop(Outcome.KILLED, f"its process ended with signal {signal.Signals(number).name}")
        return _Stop(Outcome.KILLED, f"its process ended itself with status {os.WEXITSTATUS(runner.status)}")

    def _drain(self, runner: _Runner) -> bool:
        """Takes what the submission printed; False at the end of the stream."""
        while True:
            try:
                data = os.read(runner.output, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            runner.written += len(data)
            room = runner.limits.kept_output - len(runner.captured)
            runner.captured += data[: max(room, 0)]
            if runner.written > runner.limits.output_bytes:
                limit = runner.limits.output_bytes // (1024 * 1024)
                raise _Stop(Outcome.OUTPUT_LIMIT, f"it printed more than {limit} MiB")

    def _watch(self, runner: _Runner) -> None:
        limits = runner.limits
        if _age(runner) > limits.wall_seconds:
            raise _Stop(Outcome.TIME_LIMIT, f"it took more than {limits.wall_seconds:g} s")
        now = usage(runner.pid, runner.baseline.memory_bytes)
        if now.processes > limits.processes:
            raise _Stop(Outcome.PROCESS_LIMIT, f"it started more than {limits.processes} processes")
        if now.memory_bytes > limits.memory_bytes:
            raise _Stop(Outcome.MEMORY_LIMIT, f"it took more than {limits.memory_bytes // 2**20} MiB of memory")

    @staticmethod
    def _stdout(runner: _Runner) -> str:
        return runner.captured.decode("utf-8", errors="replace")

    def _send(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        assert self._control is not None
        data = json.dumps(command).encode() + b"\n"
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self._control.sendmsg([data], extra)
        except OSError as error:
            raise self._zygote_died() from error

    def _wait_ready(self) -> None:
        if not self._ready:
            self._hear("ready", True)
            self._ready = True

    def _hear(self, key: str, value: object) -> dict[str, Any]:
        """The zygote's next message with this key and value; others about ended runners are dropped."""
        assert self._control is not None
        deadline = time.monotonic() + _START_SECONDS
        while True:
            while b"\n" in self._lines:
                line, _, rest = bytes(self._lines).partition(b"\n")
                self._lines = bytearray(rest)
                message: dict[str, Any] = json.loads(line)
                if message.get(key) == value:
                    return message
            self._control.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._control.recv(65536)
            except OSError as error:
                raise self._zygote_died() from error
            if not data:
                raise self._zygote_died()
            self._lines += data

    def _zygote_died(self) -> GraderError:
        process = self._process
        text = ""
        if process is not None:
            process.kill()
            process.wait()
            text = process.stderr.read().decode(errors="replace")[-2000:] if process.stderr else ""
        self.close()
        return GraderError(
            "the grader's runner did not start or stopped",
            cause=text.strip() or "its process ended without a word",
            next_step="mhaquiz doctor",
        )


def _age(runner: _Runner) -> float:
    return time.monotonic() - runner.started
