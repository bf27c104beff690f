"""What a sandbox promises, as data: one line for a reader, and the probe that tries to break it.

A probe is a small submission of our own. It is run like any other and answers in words what it could do, or with
nothing where it was refused. See probes.py for the probes, conformance.py for how they are run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from grader.host.limits import Limits
from grader.report import Outcome

if TYPE_CHECKING:
    from grader.host.sandbox.bait import Bait


class Kind(StrEnum):
    """What a promise is about."""

    SEES = "sees"
    READS = "reads"
    WRITES = "writes"
    REACHES = "reaches"
    LIMITS = "limits"
    LEAVES = "leaves"


class OnPlain(StrEnum):
    """What comes of a promise without walls: shows that its probe can tell."""

    BREAKS = "breaks"
    HOLDS = "holds"
    VARIES = "varies"
    """By the host: what its kernel, its container or the user's own rights refuse anyway."""


@dataclass(frozen=True)
class Promise:
    """One promise. `probe` is the source of a function `probe()`, which returns what it could do, or ""."""

    id: str
    title: str
    kind: Kind
    probe: str
    plain: OnPlain = OnPlain.BREAKS
    outcomes: tuple[Outcome, ...] = (Outcome.RETURNED,)
    """How the probe's run may end where the promise is held."""
    limits: Limits = field(default_factory=Limits)
    before: str = ""
    """The probe of an earlier run, which leaves what this one looks for."""
    left: Callable[[Bait], str] | None = None
    """Looks on the host for what the run left there, and removes it."""
    dangerous: bool = False
    """Whether it loads the host: run on demand only, and bounded by itself."""


class Result(StrEnum):
    """What came of a promise."""

    HELD = "held"
    BROKEN = "broken"
    NOT_TRIED = "not_tried"
    FAILED = "failed"
    """The probe itself went wrong: nobody knows whether the promise is held."""


@dataclass(frozen=True)
class Held:
    """A promise and whether it is held here; `detail` says what the probe could do, or why nobody knows."""

    promise: Promise
    result: Result
    detail: str = ""

    @property
    def held(self) -> bool:
        """Whether it was tried and is held."""
        return self.result is Result.HELD
