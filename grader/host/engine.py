"""Runs submissions: a warm zygote, one forked runner per submission, one request per go-token.

The engine moves bytes and enforces limits. It knows no problem and judges nothing; whatever a runner does to
its channel or to the zygote ends in an outcome of the run, never in an exception of ours.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import re
import secrets
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.errors import GraderError
from grader.guest import scratch, wire
from grader.guest.family import descendants
from grader.guest.wire import Request
from grader.host.limits import Limits
from grader.host.sandbox.base import Sandbox
from grader.host.sandbox.plain import Plain
from grader.host.watch import Usage, usage
from grader.report import Outcome

_START_SECONDS = 120.0
_ANSWER_SECONDS = 10.0
# A process that has closed its channel is normally about to end.
_GRACE_SECONDS = 1.0
_BROKEN_HARNESS = 70
_POLL_SECONDS = 0.02
_SCRIPT = Path(__file__).parent.parent / "guest" / "zygote.py"
# A frame's line and the source line below it, if there is one.
_OUR_FRAME = re.compile(rf'^ +File "{re.escape(str(_SCRIPT.parent))}/.*\n(?:    .*\n)*', re.MULTILINE)


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


class _ZygoteGone(Exception):
    """The zygote has ended, or does not answer."""


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
    selector: selectors.BaseSelector
    captured: bytearray = field(default_factory=bytearray)
    written: int = 0
    status: int | None = None


@dataclass
class _Script:
    """What is asked of one submission: to load, then each request; drawn once, however often it is run."""

    load: Request
    waiting: Iterator[Request]
    meanwhile: Callable[[int], object]
    trials: list[Request] = field(default_factory=list)

    def prepare(self) -> list[Request]:
        """Every request."""
        self.trials.extend(self.waiting)
        return self.trials


class Engine:
    """A zygote and its runners; a context manager. Not for use by several threads at once.

    A zygote that has died is replaced: a submission loses nothing by it, unless it is what killed it twice.
    """

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox or Plain()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._scratch = ""
        self._lines = bytearray()
        self._heard: list[dict[str, Any]] = []
        self._zygote = 0
        self._number = 0
        self._crash = ""
        self._ending: _Runner | None = None

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
        self._scratch = tempfile.mkdtemp(prefix="mhaquiz-")
        ours, theirs = socket.socketpair()
        try:
            self._process = self.sandbox.start(str(_SCRIPT), theirs.fileno(), self._scratch)
        except BaseException:
            ours.close()
            scratch.remove(self._scratch)
            raise
        finally:
            theirs.close()
        self._control = ours
        self._zygote = 0
        self._lines.clear()
        self._heard.clear()

    def close(self) -> None:
        """Ends the zygote and every runner, and removes their folders."""
        self._ending = None
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
        scratch.remove(self._scratch)

    def run(
        self,
        source: bytes,
        filename: str,
        entries: Sequence[str],
        requests: Iterable[Request],
        limits: Limits | None = None,
        meanwhile: Callable[[int], object] = lambda index: None,
    ) -> Run:
        """Runs one submission through the requests, in order, in a runner of its own.

        The requests are drawn while the submission loads, and `meanwhile` is called with the number of each once
        that is sent: work of the caller's that is done while the runner does its own. The runner has been told
        to end when this returns; `settle` waits until it has. Raises GraderError when no runner can be had.
        """
        load = Request({"do": "load", "filename": filename, "entries": list(entries)}, [source])
        script = _Script(load, iter(requests), meanwhile)
        for _ in range(2):
            self._crash = ""
            with contextlib.suppress(_ZygoteGone):
                return self._run_once(script, limits or Limits())
        if self._crash:
            raise GraderError("the grader's runner stopped", cause=self._crash, next_step="mhaquiz doctor")
        return Run(Outcome.KILLED, detail="it ended the process that runs it, twice")

    def settle(self) -> None:
        """Waits until nothing of the last runner is left. What came of its run stands, whatever happens here."""
        runner, self._ending = self._ending, None
        if runner is None:
            return
        try:
            self._await_end(runner, _ANSWER_SECONDS)
        except _ZygoteGone:
            self._bury(runner)

    def _run_once(self, script: _Script, limits: Limits) -> Run:
        runner = self._begin(limits)
        frames: list[wire.Frame] = []
        try:
            run = self._converse(runner, script, frames)
        except _Stop as stop:
            run = Run(stop.outcome, tuple(frames), detail=stop.detail)
        except BaseException:
            self._end(runner)
            raise
        self._end(runner)
        stdout = self._cleaned(runner.captured.decode("utf-8", errors="replace"))
        return replace(run, stdout=stdout, seconds=_age(runner))

    def _cleaned(self, text: str) -> str:
        """What was printed, less the grader's own frames in a printed stack; a runner's own files by their name."""
        whole, newline, last = text.rpartition("\n")
        if last.startswith("  File "):
            # A frame that the limit on kept output cut short: nobody can tell whose it was.
            text = whole + newline
        return re.sub(rf"{re.escape(self._scratch)}/[^/\s]+/", "", _OUR_FRAME.sub("", text))

    def _converse(self, runner: _Runner, script: _Script, frames: list[wire.Frame]) -> Run:
        loaded = self._ask(runner, script.load, script.prepare).header
        if loaded.get("loaded") is not True:
            return Run(Outcome.RAISED, load_failure=_account(loaded.get("failure")))
        for index, request in enumerate(script.prepare()):
            frames.append(self._ask(runner, request, partial(script.meanwhile, index)))
        look = self._ask(runner, Request({"do": "look"})).header.get("digests")
        if not isinstance(look, list) or not all(isinstance(group, list) for group in look):
            raise _Stop(Outcome.REFUSED, "its last answer makes no sense")
        digests = tuple(tuple(map(str, group)) for group in look)
        return Run(Outcome.RETURNED, tuple(frames), digests=digests)

    def _begin(self, limits: Limits) -> _Runner:
        self.settle()
        self.start()
        if not self._zygote:
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
            if isinstance(error, _ZygoteGone):
                self._bury(None)
            raise
        finally:
            theirs.close()
            os.close(guest_output)
        ours.setblocking(False)
        baseline = usage(self._zygote)
        assembler = wire.Assembler(limits.reply_bytes)
        selector = selectors.DefaultSelector()
        for source in (ours, output, self._control):
            assert source is not None
            selector.register(source, selectors.EVENT_READ)
        now = time.monotonic()
        return _Runner(self._number, ours, output, pid, limits, now, baseline, assembler, selector)

    def _started(self) -> int:
        """The pid of the runner that was just asked for."""
        deadline = time.monotonic() + _ANSWER_SECONDS
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
            self._listen(deadline)

    def _end(self, runner: _Runner) -> None:
        """Has a runner ended, with all that it started; `settle` waits until that is done."""
        runner.selector.close()
        runner.channel.close()
        os.close(runner.output)
        try:
            self._send({"do": "kill", "number": runner.number})
        except _ZygoteGone:
            self._bury(runner)
        else:
            self._ending = runner

    def _ask(
        self, runner: _Runner, request: Request, meanwhile: Callable[[], object] = lambda: None
    ) -> wire.Frame:
        """Sends one request and waits for its reply, watching the limits all the while. Raises _Stop."""
        token = secrets.token_hex(8)
        header = {"do": "trial", **request.header, "token": token}
        pending = self._push(runner, memoryview(wire.encode(header, request.buffers)))
        if pending:
            runner.selector.modify(runner.channel, selectors.EVENT_READ | selectors.EVENT_WRITE)
        else:
            meanwhile()
        next_watch = time.monotonic() + _POLL_SECONDS
        while True:
            for key, events in runner.selector.select(_POLL_SECONDS):
                if key.fd == runner.output:
                    if not self._drain(runner):
                        runner.selector.unregister(runner.output)
                elif key.fileobj is self._control:
                    self._listen(time.monotonic())
                else:
                    if events & selectors.EVENT_WRITE:
                        pending = self._push(runner, pending)
                        if not pending:
                            runner.selector.modify(runner.channel, selectors.EVENT_READ)
                            meanwhile()
                    frame = self._pull(runner) if events & selectors.EVENT_READ else None
                    if frame is not None:
                        return self._checked(runner, frame, token)
            if self._has_ended(runner):
                # A process of its own may hold the channel open: no answer will come.
                raise self._gone(runner)
            if time.monotonic() >= next_watch:
                self._watch(runner)
                next_watch = time.monotonic() + _POLL_SECONDS

    def _checked(self, runner: _Runner, frame: wire.Frame, token: str) -> wire.Frame:
        """The frame, if it answers what was asked."""
        self._drain(runner)
        if frame.header.get("token") != token:
            raise _Stop(Outcome.REFUSED, "an answer came to a question that was not asked")
        return frame

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
        self._await_end(runner, _GRACE_SECONDS, must=False)
        if runner.status is None:
            return _Stop(Outcome.KILLED, "it closed the channel to the grader")
        if os.WIFSIGNALED(runner.status):
            return _signalled(os.WTERMSIG(runner.status), runner.limits)
        status = os.WEXITSTATUS(runner.status)
        if status == _BROKEN_HARNESS:
            return _Stop(Outcome.KILLED, "it broke the part of the grader that runs beside it")
        return _Stop(Outcome.KILLED, f"its process ended itself with status {status}")

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
        now = usage(self._zygote, runner.baseline.memory_bytes)
        if now.processes > limits.processes:
            raise _Stop(Outcome.PROCESS_LIMIT, f"it started more than {limits.processes} processes")
        if now.memory_bytes > limits.memory_bytes:
            raise _Stop(
                Outcome.MEMORY_LIMIT, f"it took more than {limits.memory_bytes // 2**20} MiB of memory"
            )

    def _send(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._control is None:
            raise _ZygoteGone
        data = json.dumps(command).encode() + b"\n"
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self._control.settimeout(_ANSWER_SECONDS)
        try:
            self._control.sendmsg([data], extra)
        except OSError as error:
            raise _ZygoteGone from error

    def _listen(self, deadline: float) -> None:
        """Takes in what the zygote says next; waits for it until the deadline. Raises _ZygoteGone."""
        if self._control is None:
            raise _ZygoteGone
        self._control.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            data = self._control.recv(65536)
        except OSError as error:
            raise _ZygoteGone from error
        if not data:
            raise _ZygoteGone
        self._lines += data
        *whole, rest = bytes(self._lines).split(b"\n")
        self._lines = bytearray(rest)
        self._heard += map(json.loads, whole)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        try:
            while not any("ready" in message for message in self._heard):
                self._listen(deadline)
        except _ZygoteGone:
            raise self._did_not_start() from None
        self._zygote = int(next(message["pid"] for message in self._heard if "ready" in message))
        self._heard.clear()

    def _has_ended(self, runner: _Runner) -> bool:
        for message in self._heard:
            if message.get("ended") == runner.number:
                runner.status = int(message["status"])
        return runner.status is not None

    def _await_end(self, runner: _Runner, seconds: float, *, must: bool = True) -> None:
        """Waits until the zygote says that a runner has ended. Raises _ZygoteGone when it `must` and does not."""
        deadline = time.monotonic() + seconds
        while not self._has_ended(runner):
            try:
                self._listen(deadline)
            except _ZygoteGone as error:
                if must or not isinstance(error.__cause__, TimeoutError):
                    raise
                return

    def _did_not_start(self) -> GraderError:
        text = self._last_words()
        self.close()
        return GraderError(
            "the grader's runner did not start",
            cause=text or "its process ended without a word",
            next_step="mhaquiz doctor",
        )

    def _bury(self, runner: _Runner | None) -> None:
        """Ends what is left of a zygote that has gone or does not answer; keeps its last words if it crashed."""
        process = self._process
        if process is None:
            return
        left = descendants(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its socket closes a moment before it has ended.
            process.wait(timeout=_GRACE_SECONDS)
        by_itself = (process.returncode or 0) > 0
        words = self._last_words()
        self._crash = words if by_itself else ""
        self.close()
        if runner is not None and self.sandbox.host_pids:
            # It dies with the zygote, but what it has started does not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(runner.pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _last_words(self) -> str:
        """What the zygote wrote to its error stream. Ends it."""
        process = self._process
        if process is None or process.stderr is None:
            return ""
        process.kill()
        process.wait()
        os.set_blocking(process.stderr.fileno(), False)
        return (process.stderr.read() or b"").decode(errors="replace")[-2000:].strip()


def _account(failure: object) -> dict[str, Any]:
    """The harness's account of a submission that cannot be loaded. Raises _Stop for what is none."""
    if isinstance(failure, dict) and _is_account(failure):
        return failure
    raise _Stop(Outcome.REFUSED, "its first answer makes no sense")


def _is_account(failure: dict[str, Any]) -> bool:
    texts = all(isinstance(failure.get(key, ""), str) for key in ("code", "message", "type", "entry"))
    numbers = all(isinstance(failure.get(key), (int, type(None))) for key in ("line", "column"))
    names, frames = failure.get("names", []), failure.get("frames", [])
    framed = isinstance(frames, list) and all(isinstance(frame, dict) for frame in frames)
    return texts and numbers and framed and isinstance(names, list) and "code" in failure


def _signalled(number: int, limits: Limits) -> _Stop:
    """What the signal that ended a runner says."""
    if number == signal.SIGXCPU:
        return _Stop(Outcome.TIME_LIMIT, f"it took more than {limits.cpu_seconds} s of processor time")
    if number == signal.SIGXFSZ:
        return _Stop(Outcome.OUTPUT_LIMIT, "it wrote too large a file")
    known = {entry.value: entry.name for entry in signal.Signals}
    return _Stop(Outcome.KILLED, f"its process ended with signal {known.get(number, number)}")


def _age(runner: _Runner) -> float:
    return time.monotonic() - runner.started
