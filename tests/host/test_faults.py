"""What may happen to a machine in the middle of a run, and that nothing is lost by it."""

from __future__ import annotations

import os
import shutil
import signal
import textwrap
import threading
import time

import pytest

from grader.guest.family import descendants
from grader.guest.wire import Request
from grader.host.engine import Engine, Run
from grader.host.limits import MIB, Limits
from grader.report import Outcome

_RIGHT = "def f(x):\n    return x\n"


def _run(engine: Engine, source: str, calls: int = 1, **limits: float) -> Run:
    steps = [{"do": "call", "name": "f", "args": ["x"], "observe": True}]
    header = {"max_bytes": MIB, "dtype": "float32", "buffers": [], "steps": steps}
    requests = [Request({**header, "args": {"x": {"k": "v", "v": number}}}) for number in range(calls)]
    run = engine.run(textwrap.dedent(source).encode(), "answer.py", ["f"], requests, Limits(**limits))  # type: ignore[arg-type]
    engine.settle()
    return run


@pytest.mark.parametrize("after", [0.0, 0.01, 0.05, 0.2])
def test_runner_killed_at_any_point(after: float, enclosed: Engine) -> None:
    """It is told as killed, or run again if nothing of it had begun; the next run knows nothing of it."""
    _run(enclosed, _RIGHT)
    zygote = enclosed.zygotes[0].pid

    def kill() -> None:
        deadline = time.monotonic() + 10
        while not (found := descendants(zygote)) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(after)
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    source = "import time\ndef f(x):\n    time.sleep(0.05)\n    return x\n"
    try:
        run = _run(enclosed, source, calls=100)
    finally:
        killer.join()
    begun = run.outcome is Outcome.KILLED
    assert run.detail == ("its process ended with signal SIGKILL" if begun else "")
    assert begun or (after == 0.0 and len(run.frames) == 100)
    assert _run(enclosed, _RIGHT).outcome is Outcome.RETURNED


def test_full_scratch_is_the_submissions_own_error(enclosed: Engine) -> None:
    """Where the folder is a disk of its own it is full; where it is the host's, the run ends at the same size."""
    source = """
    def f(x):
        for number in range(10):
            with open(str(number), "wb") as file:
                for _ in range(8):
                    file.write(bytes(2**20))
        return x
    """
    run = _run(enclosed, source, calls=40, scratch_bytes=20 * MIB)
    if enclosed.sandbox.name == "bubblewrap":
        error = run.frames[0].header["error"]
        assert (error["type"], error["message"]) == ("OSError", "[Errno 28] No space left on device")
    else:
        assert (run.outcome, run.detail) == (Outcome.OUTPUT_LIMIT, "it wrote more than 20 MiB of files")
    assert _run(enclosed, _RIGHT).outcome is Outcome.RETURNED


def test_many_files_end_the_run_or_its_folder(enclosed: Engine) -> None:
    source = """
    def f(x):
        for number in range(3000):
            open(f"{x}-{number}", "w").close()
        return x
    """
    run = _run(enclosed, source, calls=40, scratch_files=2000)
    if enclosed.sandbox.name == "bubblewrap":
        assert run.frames[0].header["error"]["message"].startswith("[Errno 28] No space left on device")
    else:
        assert (run.outcome, run.detail) == (Outcome.OUTPUT_LIMIT, "it made more than 2000 files")


def test_files_without_a_name_count(enclosed: Engine) -> None:
    """A file that is removed while it is open takes its place all the same."""
    source = """
    import os
    kept = []
    def f(x):
        file = open("hidden", "wb")
        os.unlink("hidden")
        file.write(bytes(2**20))
        kept.append(file)
        return x
    """
    run = _run(enclosed, source, calls=400, scratch_bytes=20 * MIB)
    if enclosed.sandbox.name == "bubblewrap":
        assert "No space left on device" in run.frames[-1].header["error"]["message"]
    else:
        assert (run.outcome, run.detail) == (Outcome.OUTPUT_LIMIT, "it wrote more than 20 MiB of files")


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler here")
def test_code_that_is_compiled_runs_in_a_sandbox(enclosed: Engine) -> None:
    """The library's compiler, with its cache in the scratch folder; the first time takes long."""
    if enclosed.sandbox.name == "plain":
        pytest.skip("the sandboxes with walls are what could stop it")
    source = """
    import torch

    @torch.compile
    def _compiled(x):
        return (x.exp() + 1).sin()

    def f(x):
        t = torch.arange(16.0) / 16
        return bool(torch.allclose(_compiled(t), (t.exp() + 1).sin()))
    """
    run = _run(enclosed, source, wall_seconds=300, cpu_seconds=600, memory_bytes=4096 * MIB)
    assert run.outcome is Outcome.RETURNED, run
    assert run.frames[0].header.get("results") == [{"k": "v", "type": "bool", "v": True}], run.frames[
        0
    ].header
