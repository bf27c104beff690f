"""Whether a sandbox holds here what it promises: runs the probe of every promise under it, as a submission.

`held` needs a probe that ran to its end and could do nothing. One that goes wrong by itself says nothing about the
sandbox, and is reported as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grader.errors import GraderError
from grader.guest.wire import Request
from grader.host.engine import Engine, Run
from grader.host.limits import MIB, Limits
from grader.host.sandbox import probes, probes_limits, probes_reach
from grader.host.sandbox.bait import Bait
from grader.host.sandbox.base import Sandbox
from grader.host.sandbox.promise import Held, Promise, Result
from grader.report import Outcome

PROMISES: tuple[Promise, ...] = (*probes.PROMISES, *probes_reach.PROMISES, *probes_limits.PROMISES)
UNTRIED = "untried: "
_BESIDE = "def probe():\n    return ''\n"
_CALL = Request(
    {
        "max_bytes": MIB,
        "dtype": "float32",
        "buffers": [],
        "args": {},
        "steps": [{"do": "call", "name": "probe", "args": [], "observe": True}],
    }
)


def check(
    sandbox: Sandbox,
    dangerous: bool = False,
    private: Sequence[Path] = (),
    promises: Sequence[Promise] | None = None,
) -> list[Held]:
    """Every promise and whether the sandbox holds it here.

    `dangerous`: also try what loads the host. `private`: folders of this user's that no submission may read. Raises
    GraderError when no submission can be run under the sandbox at all.
    """
    chosen = PROMISES if promises is None else promises
    found: list[Held] = []
    engine, other = Engine(sandbox), Engine(sandbox)
    # The bait lies there first: what the zygotes inherit, they inherit with it.
    with Bait(engine, other, private) as bait, engine, other:
        _ready(engine)

        def meanwhile(index: int) -> None:
            if index == 1:
                # The submission beside has answered once, and waits for the host all the while.
                found.extend(_held(promise, bait, dangerous) for promise in chosen)

        limits = Limits(wall_seconds=600)
        beside = other.run(_BESIDE.encode(), "beside.py", ["probe"], [_CALL, _CALL], limits, meanwhile)
    if not found and chosen:
        raise _unusable(beside)
    return found


def breaks(held: Sequence[Held]) -> Iterator[Held]:
    """The promises that are broken, or of which nobody knows whether they are held."""
    return (one for one in held if one.result in (Result.BROKEN, Result.FAILED))


def _ready(engine: Engine) -> None:
    """Runs a submission that does nothing. Raises GraderError when that does not go well."""
    run = engine.run(_BESIDE.encode(), "probe.py", ["probe"], [_CALL])
    engine.settle()
    if run.outcome is not Outcome.RETURNED:
        raise _unusable(run)


def _unusable(run: Run) -> GraderError:
    cause = f"one that does nothing did not end well: {_told(run)}"
    return GraderError("no submission can be run here", cause=cause, next_step="mhaquiz doctor")


def _held(promise: Promise, bait: Bait, dangerous: bool) -> Held:
    if promise.dangerous and not dangerous:
        return Held(promise, Result.NOT_TRIED, "it loads the host: tried with --dangerous")
    try:
        if promise.before:
            earlier = _run(promise, promise.before, bait)
            if earlier.outcome is not Outcome.RETURNED or _answer(earlier) != "":
                return Held(promise, Result.FAILED, f"the run before it went wrong: {_told(earlier)}")
        run = _run(promise, promise.probe, bait)
    except GraderError as error:
        return Held(promise, Result.FAILED, f"{error.what}: {error.cause}")
    left = promise.left(bait) if promise.left is not None else ""
    return judge(promise, run, left)


def _run(promise: Promise, probe: str, bait: Bait) -> Run:
    facts = "".join(f"{name} = {value!r}\n" for name, value in bait.facts().items())
    source = probes.HEAD + facts + probe
    run = bait.engine.run(source.encode(), "probe.py", ["probe"], [_CALL], promise.limits)
    bait.engine.settle()
    return run


def judge(promise: Promise, run: Run, left: str = "") -> Held:
    """What the run of a probe, and what the host found after it, say of the promise."""
    answer = _answer(run)
    ended = run.outcome in promise.outcomes and run.outcome is not Outcome.RETURNED
    if answer is None and not ended:
        return Held(promise, Result.FAILED, f"the probe went wrong: {_told(run)}")
    if answer is not None and answer.startswith(UNTRIED):
        return Held(promise, Result.NOT_TRIED, answer.removeprefix(UNTRIED))
    if answer or left:
        return Held(promise, Result.BROKEN, answer or left)
    if run.outcome not in promise.outcomes:
        return Held(promise, Result.BROKEN, f"it was not ended: {' or '.join(promise.outcomes)} was expected")
    return Held(promise, Result.HELD)


def _answer(run: Run) -> str | None:
    """What the probe could do, in its own words; None when it did not answer with a text."""
    result: dict[str, Any] = {}
    if run.frames and run.frames[0].header.get("outcome") == "returned":
        result = run.frames[0].header["results"][0]
    answer = result.get("v")
    return answer if run.outcome is Outcome.RETURNED and isinstance(answer, str) else None


def _told(run: Run) -> str:
    """How a run ended, for whoever mends the probe."""
    if run.load_failure is not None:
        return f"it cannot be loaded: {run.load_failure.get('message')}"
    error = run.frames[0].header.get("error") if run.frames else None
    if error:
        return f"{error['type']}: {error['message']}"
    return f"{run.outcome}: {run.detail}" if run.outcome is not Outcome.RETURNED else "its answer is no text"
