"""`mhaquiz lint`: the authoring gate over every problem, or over those named."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.common import App, complete_problem, format_option, pass_app, print_json, shared_options
from grader.errors import ExitCode, Mistake, UsageError

if TYPE_CHECKING:
    from grader.gate import Gated, Kill
    from grader.host.engine import Engine

_worker_engine: Engine | None = None


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=complete_problem)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use; as many as cores when absent.")
@click.option(
    "--matrix", type=click.Path(path_type=Path, dir_okay=False), help="Also write the kill matrix here."
)
@format_option("text", "json")
@shared_options
@pass_app
def lint(app: App, ids: tuple[str, ...], jobs: int | None, matrix: Path | None, output_format: str) -> int:
    """Validate problem files and prove that the grader tells right from wrong on each.

    The reference and every right version must pass, the starter, every wrong version and the degenerate
    answers must fail, and each wrong version must be named as itself. Exit code 3 when anything is off.

    \b
    Examples:
      mhaquiz lint
      mhaquiz lint split-heads
      mhaquiz lint --problems my_pack --format json
    """
    from grader import gate

    library = app.library()
    chosen = list(ids) or library.ids()
    for problem in chosen:
        library.path_of(problem)
    if not chosen:
        raise UsageError("there are no problems to lint", next_step="mhaquiz new my-problem")
    strays = [] if ids else list(gate.stray_files(library))
    results = []
    for result in _results(app.packs, chosen, jobs or os.cpu_count() or 1):
        results.append(result)
        if output_format == "text":
            app.out(_text(result))
    if matrix is not None:
        matrix.write_text(gate.matrix(results), encoding="utf-8")
    bad = bool(strays) or any(result.errors for result in results)
    if output_format == "json":
        print_json({"problems": [r.to_json() for r in results], "stray_files": [vars(s) for s in strays]})
    else:
        app.out(_summary(results, strays, app.packs))
    return ExitCode.BROKEN_PROBLEM if bad else ExitCode.PASSED


def _results(packs: Sequence[Path], problems: Sequence[str], jobs: int) -> Iterator[Gated]:
    """The results in the order of the problems, each as soon as it and those before it are done."""
    jobs = min(jobs, len(problems))
    if jobs == 1:
        from grader.content import default_library
        from grader.gate import gate
        from grader.host.engine import Engine

        with Engine() as engine:
            yield from (gate(default_library(packs), problem, engine) for problem in problems)
        return
    # Spawned, not forked: this process may hold threads of torch.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_gate_one, [tuple(packs)] * len(problems), problems)


def _gate_one(packs: Sequence[Path], problem: str) -> Gated:
    global _worker_engine
    import torch

    from grader.content import default_library
    from grader.gate import gate
    from grader.host.engine import Engine

    torch.set_num_threads(1)
    if _worker_engine is None:
        # Lives as long as the worker process; the zygote ends when the worker's socket closes.
        _worker_engine = Engine()
        Finalize(None, _worker_engine.close, exitpriority=1)
    return gate(default_library(packs), problem, _worker_engine)


def _text(result: Gated) -> str:
    wrong = [kill for kill in result.kills if kill.expected == "failed"]
    right = [kill for kill in result.kills if kill.expected == "passed"]
    tally = f"{_good(right)} of {len(right)} right pass, {_good(wrong)} of {len(wrong)} wrong fail"
    mark = "x" if result.errors else "ok"
    lines = [f"{mark:2} {result.id:24} {tally if result.kills else 'not run'}"]
    lines += [f"   {error}" for error in result.errors]
    return "\n".join(lines)


def _good(kills: Sequence[Kill]) -> int:
    return sum(kill.good for kill in kills)


def _summary(results: Sequence[Gated], strays: Sequence[Mistake], packs: Sequence[Path]) -> str:
    bad = [result.id for result in results if result.errors]
    lines = [str(stray) for stray in strays]
    options = "".join(f" --problems {shlex.quote(str(pack))}" for pack in packs)
    if bad:
        lines.append(f"{len(bad)} of {len(results)} problems do not pass the gate: {', '.join(bad)}")
        lines.append(f"Next: correct the lines named, then run mhaquiz lint {bad[0]}{options}")
    else:
        versions = sum(len(result.kills) for result in results)
        lines.append(f"{len(results)} problems pass the gate; {versions} versions judged as they must be")
    return "\n".join(lines)
