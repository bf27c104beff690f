"""Runs the trusted versions of a problem (reference, right and wrong ones) in this process.

They go through the same harness as a submission, on their own copies of the inputs. Only code of the
problem's own solution file is ever run here; submissions go through host.engine.
"""

from __future__ import annotations

import ast
import contextlib
import io
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grader.errors import Mistake, ProblemFileError
from grader.guest import harness
from grader.guest.wire import Frame
from grader.inputs import Trial
from grader.observe import Observation, decode
from grader.spec.model import Problem

MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Version:
    """A version in a solution file: its name there, and the id of the mistake it makes (wrong ones only)."""

    name: str
    line: int

    @property
    def kind(self) -> str:
        """`reference`, `right` or `wrong`."""
        return self.name.split("_")[0]

    @property
    def mistake(self) -> str:
        """The mistake's id: `wrong_made_contiguous__stack` makes `made-contiguous`."""
        return self.name.removeprefix("wrong_").split("__")[0].replace("_", "-")


def entries_of(problem: Problem) -> tuple[str, ...]:
    """Every name a submission must define."""
    called = [step.name or problem.entry for step in problem.steps if step.do in ("call", "new")]
    return tuple(dict.fromkeys([problem.entry, *called]))


def list_versions(source: str) -> list[Version]:
    """The versions a solution file defines at its top level, in order."""
    found = []
    for node in ast.parse(source).body:
        names = (
            [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        )
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        found += [
            Version(name, node.lineno)
            for name in names
            if name == "reference" or name[:6] in ("right_", "wrong_")
        ]
    return found


@dataclass
class Versions:
    """The versions of one problem, loaded once."""

    problem: Problem
    source: str
    filename: str
    memo: dict[Any, Any] = field(default_factory=dict)
    """What was worked out for the present seed, by whoever worked it out."""
    _seed: str | None = None
    _parameters: dict[Any, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @cached_property
    def listed(self) -> list[Version]:
        """Every version, in the file's order. Raises ProblemFileError when the file is no Python."""
        try:
            return list_versions(self.source)
        except SyntaxError as error:
            raise self._broken(error.lineno or 1, error.offset or 1, error.msg) from None

    @property
    def wrong(self) -> list[Version]:
        """The known wrong versions."""
        return [version for version in self.listed if version.kind == "wrong"]

    def load(self) -> None:
        """Runs the solution file now. Raises ProblemFileError when it cannot be loaded."""
        _ = self._namespace

    @cached_property
    def _namespace(self) -> dict[str, Any]:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                loaded = harness.load(
                    self.source.encode(), self.filename, ["reference"], module_name=self._module
                )
        except harness.LoadFailure as failure:
            facts = failure.facts
            line = facts.get("line") or (facts["frames"][-1]["line"] if facts.get("frames") else 1)
            raise self._broken(
                line, 1, f"{facts.get('type', facts['code'])}: {facts.get('message', '')}"
            ) from None
        return loaded.namespace

    @property
    def _module(self) -> str:
        return "solution_" + self.problem.id.replace("-", "_")

    def _broken(self, line: int, column: int, message: str) -> ProblemFileError:
        return ProblemFileError([Mistake(self.filename, line, column, message)])

    def submission_source(self, version: str) -> bytes:
        """The solution file as a submission whose entries are those of one version; line numbers stay."""
        names = entries_of(self.problem)
        if len(names) == 1:
            return f"{self.source}\n{names[0]} = {version}\n".encode()
        return (self.source + "".join(f"\n{name} = {version}.{name}" for name in names) + "\n").encode()

    def begin(self, seed: str) -> None:
        """Keeps what is known of this seed and drops the rest: a batch of one seed pays for each version once."""
        with self._lock:
            if seed != self._seed:
                self.memo.clear()
                self._seed = seed

    def observe(self, version: str, trial: Trial) -> Observation:
        """What a version does on a trial. Remembered: trial keys are unique for one seed."""
        key = ("observe", version, trial.key, trial.dtype, trial.traced, trial.twin)
        # One at a time: a version runs with this process's own output and threads redirected.
        with self._lock:
            if key not in self.memo:
                self.memo[key] = self._observe(version, trial)
            found: Observation = self.memo[key]
        return found

    def _observe(self, version: str, trial: Trial) -> Observation:
        names = entries_of(self.problem)
        target = self._namespace[version]
        namespace = {names[0]: target} if len(names) == 1 else {name: getattr(target, name) for name in names}
        # The profiler tells which library calls a version makes; nobody asks that of the reference.
        request = trial.request(MAX_BYTES)
        request.header["profile"] &= version != "reference"
        submission = harness.Submission(self.filename, namespace, parameters=self._parameters)
        with contextlib.redirect_stdout(io.StringIO()):
            header, buffers = harness.perform(submission, request.header, request.buffers)
        return decode(Frame(header, tuple(buffers)), self._lines)

    @cached_property
    def _lines(self) -> list[str]:
        return harness.source_lines(self.source)
