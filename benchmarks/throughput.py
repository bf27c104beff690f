"""How many submissions a warm engine grades, against a fresh `python -m pytest` for each. Prints; asserts nothing.

    python benchmarks/throughput.py [--count 200] [--sampled 40] [--jobs 2] [--sandbox NAME] [--many 0] [ID]...

All lines of one problem are measured in one run, in turns: a part of ours, a part of theirs. Theirs is sampled and
extrapolated, and labelled so. `--many 5000` goes on grading and prints the memory on the way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from grader.api import task  # noqa: E402
from grader.batch import grade_many  # noqa: E402
from grader.content import default_library  # noqa: E402
from grader.guest.family import descendants  # noqa: E402
from grader.host.engine import Engine, Run  # noqa: E402
from grader.host.sandbox import backends, choose  # noqa: E402
from grader.judge import Submission, Task, grade  # noqa: E402

_TARGETS = {"split-heads": 25.0, "attention": 10.0}
_PARTS = 4
_ALONE = 21
# What a grader that starts an interpreter for each submission does at the least: one test of one shape and value.
_TEST = """\
import torch
from answer import {entry}
from expected import reference


def test_it():
    torch.manual_seed(0)
    {call}
"""
_CALLS = {
    "split-heads": (
        "x = torch.randn(2, 5, 12)\n    assert torch.equal(split_heads(x, 4), reference(x, 4))\n"
    ),
    "attention": (
        "q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))\n"
        "    torch.testing.assert_close(attention(q, k, v)[0], reference(q, k, v)[0])\n"
    ),
}


def main() -> int:
    """Prints the lines of every problem asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*", default=list(_TARGETS), metavar="ID")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--sampled", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sandbox", choices=[sandbox.name for sandbox in backends()])
    parser.add_argument("--many", type=int, default=0)
    asked = parser.parse_args()
    sandbox = next((s for s in backends() if s.name == asked.sandbox), None) or choose()
    print(f"sandbox {sandbox.name}, {asked.jobs} at once")
    with Engine(sandbox, asked.jobs) as engine:
        for name in asked.ids:
            _measure(name, engine, asked.count, asked.sampled)
        if asked.many:
            _memory(engine, asked.many)
    return 0


def _measure(name: str, engine: Engine, count: int, sampled: int) -> None:
    made = task(default_library(), name)
    right = Submission(made.versions.submission_source("reference"), "answer.py")
    list(grade_many(made, [right] * engine.size, engine))
    ours = theirs = 0.0
    for _ in range(_PARTS):
        ours += _seconds_of_ours(made, right, engine, count // _PARTS)
        theirs += _seconds_of_theirs(name, made, sampled // _PARTS, engine.size)
    each, other = ours / count, theirs / sampled
    print(f"{name}: {count} graded, {each * 1000:.0f} ms each ({1 / each:.0f} a second)")
    print(
        f"  a fresh python each: {other * 1000:.0f} ms each ({sampled} sampled, extrapolated to {count}); "
        f"{other / each:.1f}x the throughput (target {_TARGETS.get(name, 0):g}x)"
    )
    parts = _costs(made, right, engine)
    print("  one alone: " + ", ".join(f"{part} {value * 1000:.1f} ms" for part, value in parts.items()))


def _costs(made: Task, right: Submission, engine: Engine) -> dict[str, float]:
    """Seconds of one submission by what they go into, one at a time; the judge's is what the runner leaves."""
    run, costs = engine.run, []

    def noted(*arguments: Any, **options: Any) -> Run:
        result = run(*arguments, **options)
        costs.append(dict(result.costs))
        return result

    engine.run = noted  # type: ignore[method-assign]
    for _ in range(_ALONE):
        report = grade(made, right, engine, seed="costs")
        costs[-1]["judge"] = report.duration_ms / 1000 - sum(costs[-1].values())
    engine.run = run  # type: ignore[method-assign]
    return {part: statistics.median(cost[part] for cost in costs[1:]) for part in costs[0]}


def _seconds_of_ours(made: Task, right: Submission, engine: Engine, count: int) -> float:
    started = time.perf_counter()
    verdicts = {report.verdict.value for report in grade_many(made, [right] * count, engine)}
    if verdicts != {"passed"}:
        raise SystemExit(f"a right submission got {verdicts}")
    return time.perf_counter() - started


def _seconds_of_theirs(name: str, made: Task, count: int, jobs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "answer.py").write_bytes(made.versions.submission_source("reference"))
        (here / "expected.py").write_text(made.versions.source)
        test = _TEST.format(entry=made.problem.entry, call=_CALLS[name])
        (here / "test_answer.py").write_text(test)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_answer.py"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}

        def one(_: int) -> None:
            subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True)

        started = time.perf_counter()
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, range(count)))
        return time.perf_counter() - started


def _memory(engine: Engine, many: int) -> None:
    """The memory of the host and of every process below it, after 200 submissions and on the way to many."""
    made = task(default_library(), "split-heads")
    right = Submission(made.versions.submission_source("reference"), "answer.py")
    step, done = 200, 0
    while done < many:
        list(grade_many(made, [right] * step, engine))
        engine.settle()
        done += step
        if done == step or done % 1000 == 0:
            below = sum(map(_resident, descendants(os.getpid())))
            print(
                f"  after {done:5} submissions: host {_resident(os.getpid()):.0f} MiB, below it {below:.0f} MiB"
            )


def _resident(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return 0.0
    return sum(int(fields.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
