"""How fast the grader is, as ratios measured pair by pair in one run. Prints; asserts nothing.

    python benchmarks/speed.py [--pairs N]

Each line: what was measured, the median and the best over the pairs, and the target on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
_RIGHT = """\
def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("not divisible")
    return x.unflatten(-1, (num_heads, d_model // num_heads)).transpose(1, 2)
"""
_WRONG = _RIGHT.replace(".transpose(1, 2)", ".transpose(1, 2).contiguous()")
_IDLE_RUNNER = b"import time\n\n\ndef f():\n    time.sleep(0.4)\n"


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _python(arguments: Sequence[str], home: str) -> Callable[[], object]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MHAQUIZ_HOME": home}
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, env=environment, capture_output=True, check=True, cwd=home)


def _ratio(
    title: str, target: float, pairs: int, ours: Callable[[], object], theirs: Callable[[], object]
) -> None:
    """One line: how many times longer ours takes than theirs, each pair run back to back."""
    ours(), theirs()
    taken = [(_seconds(theirs), _seconds(ours)) for _ in range(pairs)]
    ratios = [mine / other for other, mine in taken]
    best = min(mine for _, mine in taken) / min(other for other, _ in taken)
    print(f"{title:58} median {statistics.median(ratios):5.2f}x  best {best:5.2f}x  (target {target:g}x)")


def _second_grades(pairs: int) -> None:
    from grader import api
    from grader.host.engine import Engine

    with Engine() as engine:
        measured = (("right", _RIGHT, " (target 120 ms)"), ("a copy, with its mistake named", _WRONG, ""))
        for title, source, target in measured:
            taken = [
                _seconds(lambda text=source: api.grade("split-heads", text, engine=engine)) * 1000  # type: ignore[misc]
                for _ in range(pairs * 3 + 1)
            ][1:]
            label = f"second grade in one engine, {title}"
            print(f"{label:58} median {statistics.median(taken):4.0f} ms  best {min(taken):4.0f} ms {target}")


def _private_memory(pid: int) -> float:
    """MiB that only this process fills."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return sum(int(fields[name].split()[0]) for name in ("Private_Dirty", "Private_Clean")) / 1024


def _runner_memory() -> None:
    from threading import Thread

    from grader.guest.family import descendants
    from grader.guest.wire import Request
    from grader.host.engine import Engine

    steps = [{"do": "call", "name": "f", "args": [], "observe": True}]
    request = Request({"max_bytes": 1, "dtype": "float32", "buffers": [], "args": {}, "steps": steps})
    with Engine() as engine:
        engine.run(_IDLE_RUNNER, "answer.py", ["f"], [request])
        running = Thread(target=engine.run, args=(_IDLE_RUNNER, "answer.py", ["f"], [request]))
        running.start()
        time.sleep(0.25)
        found = [pid for pid in descendants(os.getpid()) if _is_runner(pid)]
        try:
            sizes = [_private_memory(pid) for pid in found]
            least = min(sizes, default=float("nan"))
            print(f"{'private memory of one more runner':58} {least:5.1f} MiB  (target 15 MiB)")
        except OSError:
            print(f"{'private memory of one more runner':58} not measured: this kernel has no smaps_rollup")
        running.join()


def _is_runner(pid: int) -> bool:
    """A runner works in a folder of its own."""
    try:
        return "mhaquiz-" in os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False


def main() -> None:
    """Measures everything once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "split_heads.py"
        file.write_text(_RIGHT)
        attempt = _python(["-m", "grader", "attempt", "split-heads", str(file)], home)
        listing = _python(["-m", "grader", "list"], home)
        _ratio(
            "attempt split-heads / import torch", 1.6, pairs, attempt, _python(["-c", "import torch"], home)
        )
        _ratio("list / import click, yaml", 8, pairs, listing, _python(["-c", "import click, yaml"], home))
    _second_grades(pairs)
    _runner_memory()


if __name__ == "__main__":
    main()
