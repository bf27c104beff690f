"""Runs submissions: warm zygotes, one forked runner per submission, one request per go-token.

The engine moves bytes and enforces limits. It knows no problem and judges nothing; whatever a runner does to
its channel or to the zygote ends in an outcome of the run, never in an exception of ours.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

from grader.errors import GraderError
from grader.guest import wire
from grader.guest.wire import Request
from grader.host.limits import Limits
from grader.host.runner import Gone, NotBegun, Runner, Stop, not_confined
from grader.host.sandbox.base import Enclosed, Sandbox
from grader.host.sandbox.plain import Plain
from grader.host.zygote import Zygote
from grader.report import Outcome

_LONGEST_TEXT = 8000
_LONGEST_FILE = 100_000_000
_MOST_ITEMS = 50


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
    costs: Mapping[str, float] = field(default_factory=dict)
    """Seconds by what they went into: `fork`, `confine`, `load` and `run`."""


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
    """A pool of zygotes and their runners; a context manager. Several threads may run submissions at once.

    Each runs one submission at a time, so that no two have more in common than the host. A zygote that has died is
    replaced: a submission loses nothing by it, unless it is what killed it twice.
    """

    def __init__(self, sandbox: Sandbox | None = None, size: int = 1) -> None:
        self.sandbox = sandbox or Plain()
        self.size = size
        self.zygotes = tuple(Zygote(self.sandbox) for _ in range(size))
        self._idle: queue.LifoQueue[Zygote] = queue.LifoQueue()
        self._taking_all = threading.Lock()
        self._interrupted = False
        for zygote in reversed(self.zygotes):
            self._idle.put(zygote)

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the zygotes and returns at once: their import of torch overlaps the caller's work."""
        for zygote in self.zygotes:
            zygote.start()

    def close(self) -> None:
        """Ends every zygote and runner, and removes their folders."""
        for zygote in self.zygotes:
            zygote.close()

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Ends every run now, and for the block refuses others. The engine can be used again after it."""
        self._interrupted = True
        for zygote in self.zygotes:
            zygote.kill()
        try:
            yield
        finally:
            self._interrupted = False

    def settle(self) -> None:
        """Waits until nothing is left of any run that has ended."""
        idle: list[Zygote] = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for zygote in reversed(idle):
            zygote.settle()
            self._idle.put(zygote)

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
        with contextlib.suppress(Gone), self._taken(1) as (zygote,):
            return _run_once(zygote, script, limits or Limits())
        # It may have been another's doing, by taking the host's memory: once more, with nothing beside it.
        if self._interrupted:
            raise GraderError("the run was interrupted")
        with contextlib.suppress(Gone), self._taken(self.size) as (zygote, *_):
            try:
                return _run_once(zygote, script, limits or Limits())
            except NotBegun:
                raise not_confined("its process was ended from outside, twice") from None
        if zygote.crash:
            raise GraderError("the grader's runner stopped", cause=zygote.crash, next_step="mhaquiz doctor")
        return Run(Outcome.KILLED, detail="it ended the process that runs it, twice")

    @contextlib.contextmanager
    def _taken(self, count: int) -> Iterator[list[Zygote]]:
        """So many idle zygotes, for the block. Who wants all of them waits for the rest, holding none before."""
        taken: list[Zygote] = []
        try:
            with self._taking_all if count > 1 else contextlib.nullcontext():
                while len(taken) < count:
                    taken.append(self._idle.get())
            yield taken
        finally:
            for zygote in reversed(taken):
                self._idle.put(zygote)


def _run_once(zygote: Zygote, script: _Script, limits: Limits) -> Run:
    zygote.crash = ""
    asked = time.monotonic()
    runner = zygote.begin(limits)
    forked = time.monotonic() - asked
    frames: list[wire.Frame] = []
    try:
        run = _converse(runner, script, frames)
    except Stop as stop:
        run = Run(stop.outcome, tuple(frames), detail=stop.detail)
    finally:
        enclosed = zygote.enclosed
        zygote.end(runner)
    stdout = runner.captured.decode("utf-8", errors="replace")
    costs = {"fork": forked, "confine": runner.confine_seconds, **run.costs}
    return replace(run, stdout=_cleaned(stdout, enclosed), seconds=runner.age, costs=costs)


def _converse(runner: Runner, script: _Script, frames: list[wire.Frame]) -> Run:
    loaded = runner.ask(script.load, script.prepare).header
    load_seconds = runner.age
    if loaded.get("loaded") is not True:
        return Run(Outcome.RAISED, load_failure=_account(loaded.get("failure")))
    for index, request in enumerate(script.prepare()):
        frames.append(runner.ask(request, partial(script.meanwhile, index)))
    look = runner.ask(Request({"do": "look"})).header.get("digests")
    if not isinstance(look, list) or not all(isinstance(group, list) for group in look):
        raise Stop(Outcome.REFUSED, "its last answer makes no sense")
    digests = tuple(tuple(map(str, group)) for group in look)
    costs = {"load": load_seconds - runner.confine_seconds, "run": runner.age - load_seconds}
    return Run(Outcome.RETURNED, tuple(frames), digests=digests, costs=costs)


def _cleaned(text: str, enclosed: Enclosed | None) -> str:
    """What was printed, less the grader's own frames in a printed stack; a runner's own files by their name."""
    if enclosed is None:
        return text
    whole, newline, last = text.rpartition("\n")
    if last.startswith("  File "):
        # A frame that the limit on kept output cut short: nobody can tell whose it was.
        text = whole + newline
    # A frame's line and the source line below it, if there is one.
    ours = rf'^ +File "{re.escape(enclosed.guest)}/.*\n(?:    .*\n)*'
    return re.sub(rf"{re.escape(enclosed.scratch)}/[^/\s]+/", "", re.sub(ours, "", text, flags=re.MULTILINE))


def _account(failure: object) -> dict[str, Any]:
    """The harness's account of a submission that cannot be loaded. Raises Stop for what is none."""
    if isinstance(failure, dict) and _is_account(failure):
        return {key: _cut(value) for key, value in failure.items()}
    raise Stop(Outcome.REFUSED, "its first answer makes no sense")


def _cut(value: Any) -> Any:
    """What a harness would have kept: whoever forges an account has no long words of it."""
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if isinstance(value, list):
        return [_cut(item) for item in value[:_MOST_ITEMS]]
    return (
        {key[:_LONGEST_TEXT]: _cut(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


def _is_account(failure: dict[str, Any]) -> bool:
    texts = all(isinstance(failure.get(key, ""), str) for key in ("code", "message", "type", "entry"))
    numbers = all(_is_place(failure.get(key)) for key in ("line", "column"))
    names, frames = failure.get("names", []), failure.get("frames", [])
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    framed = isinstance(frames, list) and all(isinstance(frame, dict) for frame in frames)
    return texts and numbers and framed and named and "code" in failure


def _is_place(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= _LONGEST_FILE)
