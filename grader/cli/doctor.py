"""`mhaquiz doctor`: looks at everything a grade needs on this machine and says what is wrong and the remedy.

Nothing is changed or made. torch is imported in a process of its own with a time limit, so that a broken one
cannot take the doctor down. A finding is a problem only when it prevents grading.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import click

from grader.cli.common import App, Look, format_option, pass_app, print_json, shared_options, version
from grader.errors import MhaquizError, UsageError
from grader.store.errors import StoreUnavailable
from grader.store.folder import state_folder
from grader.store.store import open_store

PYTHON_FLOOR = (3, 11)
TORCH_FLOOR = (2, 6)
TORCH_SECONDS = 120
PACKAGES = ("click", "jinja2", "markdown-it-py", "platformdirs", "pydantic", "pygments", "pyyaml", "rich")
PROBE = """
import json, torch
mps = getattr(torch.backends, "mps", None)
cuda = torch.cuda.is_available()
print(json.dumps({
    "version": str(torch.__version__),
    "sum": float(torch.ones(3).sum()),
    "cuda": torch.cuda.get_device_name(0) if cuda else None,
    "mps": bool(mps is not None and mps.is_available()),
}))
"""


class Level(StrEnum):
    """How a finding is meant."""

    OK = "ok"
    WARN = "warn"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    level: Level
    says: str
    remedy: str = ""


MARKS = {Level.OK: "✓", Level.WARN: "!", Level.PROBLEM: "✗"}
COLORS = {Level.OK: "green", Level.WARN: "yellow", Level.PROBLEM: "red"}


@click.command("doctor")
@format_option("text", "json")
@shared_options
@pass_app
def doctor(app: App, output_format: str) -> int:
    """Check this machine: what works, what does not, and the remedy.

    Ends with 1 when something prevents grading, else 0.

    \b
    Example:
      mhaquiz doctor
    """
    findings = examine(app)
    healthy = all(finding.level is not Level.PROBLEM for finding in findings)
    if output_format == "json":
        print_json(
            {
                "mhaquiz": version(),
                "healthy": healthy,
                "findings": [{**asdict(finding), "level": str(finding.level)} for finding in findings],
                "error": None,
            }
        )
    else:
        app.out("\n".join(_line(finding, app.look()) for finding in findings))
        app.out(f"\n{_verdict(findings)}\nNext: {_next(healthy)}")
    return 0 if healthy else 1


def examine(app: App) -> list[Finding]:
    """Every finding, in the order a grade would meet them."""
    looks: list[Callable[[], Finding]] = [
        python,
        processes,
        packages,
        yaml_loader,
        lambda: torch_import(sys.executable),
        lambda: content(app),
        lambda: folder(state_folder()),
        database,
        temporary,
        lambda: sandbox(app),
        lambda: terminal(app.look(), sys.stdout.encoding),
    ]
    return [look() for look in looks]


def python(running: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """The interpreter."""
    said = ".".join(map(str, running))
    if tuple(running[:2]) < PYTHON_FLOOR:
        return Finding("python", Level.PROBLEM, f"{said}; 3.11 or newer is needed", "install a newer Python")
    return Finding("python", Level.OK, f"{said} at {sys.executable}")


def processes(forks: bool = hasattr(os, "fork")) -> Finding:
    """Whether a submission can have a process of its own."""
    if forks:
        return Finding("processes", Level.OK, "a submission runs in a forked process")
    return Finding(
        "processes",
        Level.PROBLEM,
        "this system cannot fork, which the runner of a submission needs",
        "use Linux, macOS or, on Windows, WSL",
    )


def packages(names: tuple[str, ...] = PACKAGES) -> Finding:
    """The libraries that mhaquiz is built on."""
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {installed(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding(
            "packages",
            Level.PROBLEM,
            f"not installed: {', '.join(missing)}",
            f"{sys.executable} -m pip install {' '.join(missing)}",
        )
    return Finding("packages", Level.OK, ", ".join(found))


def yaml_loader() -> Finding:
    """Whether PyYAML has its fast parser."""
    import yaml

    if hasattr(yaml, "CSafeLoader"):
        return Finding("yaml", Level.OK, "the fast parser is there")
    return Finding(
        "yaml",
        Level.WARN,
        "PyYAML was built without libyaml: `mhaquiz list` is slower, nothing else",
        f"{sys.executable} -m pip install --force-reinstall pyyaml",
    )


def torch_import(interpreter: str, seconds: float = TORCH_SECONDS, probe: str = PROBE) -> Finding:
    """Whether torch imports and computes, which version it is and which devices it has."""
    remedy = f"{sys.executable} -m pip install 'torch>=2.6'"
    try:
        done = subprocess.run(
            [interpreter, "-c", probe],
            capture_output=True,
            text=True,
            timeout=seconds,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding(
            "torch", Level.PROBLEM, f"importing it took more than {seconds:g} s and was stopped", remedy
        )
    except OSError as error:
        return Finding("torch", Level.PROBLEM, f"Python cannot be started: {error}", remedy)
    facts = _facts(done.stdout)
    if done.returncode != 0 or facts is None:
        return Finding("torch", Level.PROBLEM, _why(done.returncode, done.stderr), remedy)
    return _torch(facts, remedy)


def _facts(text: str) -> dict[str, Any] | None:
    try:
        facts = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return facts if isinstance(facts, dict) else None


def _why(code: int, stderr: str) -> str:
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    ended = f"its import was killed by signal {-code}" if code < 0 else "it cannot be imported"
    return f"{ended}: {last.strip()}" if last else ended


def _torch(facts: dict[str, Any], remedy: str) -> Finding:
    said = str(facts["version"])
    numbers = tuple(int(part) for part in said.split("+")[0].split(".")[:2] if part.isdigit())
    if numbers < TORCH_FLOOR:
        return Finding("torch", Level.PROBLEM, f"{said}; 2.6 or newer is needed", remedy)
    devices = [
        "cpu",
        *([f"cuda ({facts['cuda']})"] if facts["cuda"] else []),
        *(["mps"] if facts["mps"] else []),
    ]
    return Finding("torch", Level.OK, f"{said}; devices: {', '.join(devices)}")


def content(app: App) -> Finding:
    """Whether the problems are there and every file is in order."""
    try:
        library = app.library()
        summaries = library.problems()
        for summary in summaries:
            library.load(summary.id)
            if not library.solution_path(summary.id).is_file():
                return _no_solution(summary.id)
    except (MhaquizError, OSError) as error:
        where = getattr(error, "where", "")
        return Finding(
            "problems", Level.PROBLEM, f"{where}: {error}".lstrip(": "), "mhaquiz lint names every mistake"
        )
    if not summaries:
        return Finding(
            "problems", Level.PROBLEM, "none were found", "install mhaquiz again, or use --problems DIR"
        )
    tracks = Counter(summary.track for summary in summaries)
    told = ", ".join(f"{track} {number}" for track, number in sorted(tracks.items()))
    return Finding("problems", Level.OK, f"{len(summaries)} in order ({told})")


def _no_solution(problem: str) -> Finding:
    return Finding(
        "problems",
        Level.PROBLEM,
        f"{problem} has no solution file",
        "install mhaquiz again, or mend the pack",
    )


def folder(path: Path) -> Finding:
    """Whether attempts can be kept where they should be. Grading works without."""
    existing = next(place for place in (path, *path.parents) if place.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Finding("state", Level.OK, f"{path}{'' if existing == path else ' (made when first needed)'}")
    return Finding(
        "state",
        Level.WARN,
        f"{path} cannot be written to: grades are shown, but attempts and hints are not remembered",
        "set MHAQUIZ_HOME to a folder you can write to",
    )


def database() -> Finding:
    """Whether the record of attempts is sound."""
    with open_store() as store:
        try:
            said = store.check()
        except StoreUnavailable as error:
            return Finding("record", Level.WARN, f"{error.what} ({error.where})", error.next_step)
        if said == "absent":
            return Finding("record", Level.OK, "no attempts yet")
        if said == "ok":
            return Finding("record", Level.OK, f"{store.path} is sound")
    remedy = f"mv '{store.path}' '{store.path}.damaged'  (mhaquiz then starts a new record)"
    return Finding("record", Level.WARN, f"{store.path} is damaged: {said}", remedy)


def temporary() -> Finding:
    """Whether there is a place for a submission's working folder."""
    try:
        with tempfile.TemporaryDirectory(prefix="mhaquiz-") as path:
            Path(path, "probe").write_text("x", encoding="utf-8")
        return Finding("temporary", Level.OK, f"{tempfile.gettempdir()} can be written to")
    except OSError as error:
        return Finding(
            "temporary",
            Level.PROBLEM,
            f"no temporary file can be written: {error}",
            "free some space, or set TMPDIR",
        )


def sandbox(app: App) -> Finding:
    """What keeps a submission in bounds, and what to do where that does not hold other people's code."""
    from grader.host.sandbox import VARIABLE, backends, choose

    hide = app.library().folders()
    try:
        used = choose(hide)
    except UsageError as error:
        return Finding(
            "sandbox", Level.PROBLEM, f"{error.what}: {error.cause}".removesuffix(": "), error.next_step
        )
    if used.holds_strangers:
        return Finding(
            "sandbox", Level.OK, f"{used.name}: holds other people's code; `mhaquiz sandbox check` tries it"
        )
    reasons = {one.name: one.available() for one in backends(hide) if one.holds_strangers}
    works = None in reasons.values()
    remedy = f"unset {VARIABLE}" if works else next(f"{name}: {reason}" for name, reason in reasons.items())
    return Finding(
        "sandbox",
        Level.WARN,
        f"{used.name}: a process of its own with limits on time, memory and output, for your own code; "
        "do not grade other people's code with it",
        remedy,
    )


def terminal(look: Look, encoding: str | None) -> Finding:
    """What this terminal can show."""
    said = (
        f"{encoding or 'unknown encoding'}, {look.width} columns, {'colour' if look.color else 'no colour'}"
    )
    if look.unicode:
        return Finding("terminal", Level.OK, said)
    return Finding(
        "terminal", Level.WARN, f"{said}; drawn in ASCII", "set PYTHONIOENCODING=utf-8 for full drawings"
    )


def _line(finding: Finding, look: Look) -> str:
    mark = look.style(f"{MARKS[finding.level]} {finding.level:<8}", fg=COLORS[finding.level])
    head = f"{mark}{finding.name:<10} "
    inner = 21
    rows = _wrap(finding.says, look.width - inner)
    if finding.remedy:
        rows += [f"-> {finding.remedy}"]
    return head + f"\n{' ' * inner}".join(rows)


def _wrap(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, max(20, room), break_long_words=False, break_on_hyphens=False) or [""]


def _verdict(findings: list[Finding]) -> str:
    counts = Counter(finding.level for finding in findings)
    if counts[Level.PROBLEM]:
        return f"{counts[Level.PROBLEM]} of {len(findings)} prevent grading; each has its remedy."
    if counts[Level.WARN]:
        return f"Grading works; {counts[Level.WARN]} of {len(findings)} could be better."
    return "Everything a grade needs is in order."


def _next(healthy: bool) -> str:
    return "mhaquiz" if healthy else "follow the remedies, then mhaquiz doctor"
