"""How often does the grader fail an honest version, or pass a near miss? Any of either blocks a release.

    python benchmarks/honest.py --draws 200 [ID]...

Every `right_*` and the reference of every problem is judged on fresh draws, each version in this process. Two
numbers are printed for each problem: draws on which a single run found something, and draws on which the
finding was confirmed on two fresh draws, which is what a submission would be failed for. The near misses
(a zeroed row, values 0.3 % and 1 % off, 16-bit work inside float32) are made from the reference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader.content import default_library
from grader.fold import Fold, failed_trials, fold, views
from grader.inputs import Phase, Planner, Trial
from grader.plan import plan, redraw, with_cotangents
from grader.report import Status
from grader.versions import Versions, entries_of

_NEAR = """

def _near(change):
    def run(*args):
        out = reference(*args)
        if isinstance(out, torch.Tensor):
            return change(out)
        return type(out)(change(item) if isinstance(item, torch.Tensor) else item for item in out)
    return run

def _zero_row(t):
    if not t.is_floating_point() or t.numel() == 0 or t.dim() == 0:
        return t
    keep = torch.ones(t.shape[:-1], dtype=t.dtype, device=t.device)
    keep.view(-1)[keep.numel() // 2] = 0
    return torch.where(keep.unsqueeze(-1).expand(t.shape) == 0, torch.zeros_like(t), t)

def _times(factor):
    return lambda t: torch.where(torch.isfinite(t), t * factor, t) if t.is_floating_point() else t

def _inside_16(*args):
    low = [a.to(torch.bfloat16) if isinstance(a, torch.Tensor) and a.dtype == torch.float32 else a for a in args]
    out = reference(*low)
    back = lambda t: t.to(args[0].dtype) if t.is_floating_point() else t
    return back(out) if isinstance(out, torch.Tensor) else type(out)(back(t) for t in out)

near_zeroed_row = _near(_zero_row)
near_three_per_mille = _near(_times(1.003))
near_one_percent = _near(_times(1.01))
near_inside_16 = _inside_16
"""
_NEAR_NAMES = ("near_zeroed_row", "near_three_per_mille", "near_one_percent", "near_inside_16")


@dataclass(frozen=True)
class Line:
    """One version of one problem: draws, single-run failures and confirmed failures."""

    problem: str
    version: str
    draws: int
    single: int
    confirmed: int


def main() -> int:
    """Prints the table; 1 when an honest version was failed or a near miss passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    ids = arguments.ids or default_library().ids()
    bad = 0
    print(f"{'problem':26} {'version':40} {'draws':>6} {'single':>7} {'confirmed':>10}")
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for lines in pool.map(measure, ids, [arguments.draws] * len(ids)):
            bad += sum(_shown(line) for line in lines)
    print(f"{bad} blocking" if bad else "no honest version failed, no near miss passed")
    return 1 if bad else 0


def _shown(line: Line) -> bool:
    near = line.version.startswith("near_")
    blocks = line.single < line.draws if near else line.confirmed > 0
    mark = "  BLOCKS" if blocks else ""
    if blocks or line.single or near:
        print(
            f"{line.problem:26} {line.version:40} {line.draws:6} {line.single:7} {line.confirmed:10}{mark}",
            flush=True,
        )
    return blocks


def measure(problem_id: str, draws: int) -> list[Line]:
    """Every honest version and near miss of one problem."""
    torch.set_num_threads(1)
    library = default_library()
    problem = library.load(problem_id)
    near = problem.kind == "function" and len(entries_of(problem)) == 1 and problem.numbers == "real"
    source = library.solution_source(problem_id) + (_NEAR if near else "")
    versions = Versions(problem, source, str(library.solution_path(problem_id)))
    honest = [v.name for v in versions.listed if v.kind in ("reference", "right")]
    names = [*honest, *(_NEAR_NAMES if near else ())]
    single, confirmed = Counter[str](), Counter[str]()
    for draw in range(draws):
        planner = Planner(problem, f"honest-{draw}")
        versions.begin(planner.seed)
        trials = list(_prepared(versions, planner, plan(planner)))
        for name in names:
            failed = _failed(versions, name, trials)
            single[name] += bool(failed)
            confirmed[name] += bool(failed) and _confirmed(versions, name, planner, trials, failed)
    return [Line(problem.id, name, draws, single[name], confirmed[name]) for name in names]


def _prepared(versions: Versions, planner: Planner, trials: Sequence[Trial]) -> Iterator[Trial]:
    for trial in trials:
        if trial.gradient_of or trial.parameters:
            bare = replace(trial, gradient_of=(), parameters=False, key=trial.key + "/bare")
            yield with_cotangents(trial, versions.observe("reference", bare), planner.seed)
        else:
            yield trial


def _failed(versions: Versions, name: str, trials: Sequence[Trial]) -> list[Fold]:
    seen = views(versions.problem, trials, [versions.observe(name, trial) for trial in trials], versions)
    return [entry for entry in fold(versions.problem, seen, len(trials)) if entry.status is not Status.PASSED]


def _confirmed(
    versions: Versions, name: str, planner: Planner, trials: Sequence[Trial], failed: Sequence[Fold]
) -> bool:
    """Whether some finding repeats on two fresh draws; findings outside the hygiene run need no repeat."""
    for index in failed_trials(failed):
        if trials[index].phase is not Phase.HYGIENE:
            return True
        again = list(_prepared(versions, planner, [redraw(planner, trials[index], n) for n in range(2)]))
        if len(failed_trials(_failed(versions, name, again))) == len(again):
            return True
    return False


if __name__ == "__main__":
    raise SystemExit(main())
