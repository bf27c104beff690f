"""Grades every version of every problem on the CPU and on the GPU and prints where the verdicts differ.

    python benchmarks/device_check.py [--device cuda] [ID]...

Both runs of a version take the same seed. Under five minutes on one GPU. Exit code 1 when a verdict differs.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch

from grader.api import task
from grader.content import default_library
from grader.host.engine import Engine
from grader.judge import Submission, Task, grade
from grader.report import Report, Status


def main() -> int:
    """Prints one line for each difference and a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("there is no CUDA device here: nothing was checked", file=sys.stderr)
        return 2
    library, started, judged, differing = default_library(), time.monotonic(), 0, 0
    with Engine() as engine:
        for problem in arguments.ids or library.ids():
            made = task(library, problem)
            for version in made.versions.listed:
                judged += 1
                differing += _differs(made, version.name, engine, arguments.device)
    print(
        f"{judged} versions, {differing} verdicts differ, {time.monotonic() - started:.0f} s, {_name(arguments.device)}"
    )
    return 1 if differing else 0


def _differs(made: Task, version: str, engine: Engine, device: str) -> bool:
    source = made.versions.submission_source(version)
    reports = [
        grade(made, Submission(source, "answer.py"), engine, seed=f"device-{version}", device=where)
        for where in ("cpu", device)
    ]
    if reports[0].verdict == reports[1].verdict and _named(reports[0]) == _named(reports[1]):
        return False
    print(f"{made.problem.id} {version}: " + " | ".join(_words(report) for report in reports), flush=True)
    return True


def _named(report: Report) -> list[str]:
    return [mistake.id for mistake in report.mistakes]


def _words(report: Report) -> str:
    failed = [f"{c.name}: {c.message}" for c in report.checks if c.status is Status.FAILED]
    return f"{report.device}: {report.verdict} {_named(report)} {'; '.join(failed)} {report.error or ''}"


def _name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


if __name__ == "__main__":
    raise SystemExit(main())
