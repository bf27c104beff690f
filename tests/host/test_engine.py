"""The engine: what it returns, that nothing is left of a run, and that a zygote which dies is replaced."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.errors import GraderError
from grader.guest.family import descendants
from grader.guest.scratch import remove
from grader.guest.wire import Request
from grader.host.engine import Engine, Run
from grader.host.limits import MIB, Limits
from grader.host.sandbox import plain
from grader.host.sandbox.interpreter import guest_environment
from grader.host.sandbox.plain import Plain
from grader.host.watch import usage
from grader.host.zygote import Zygote
from grader.report import Outcome

ROOT = Path(__file__).resolve().parents[2]
_RIGHT = "def f(x):\n    return x\n"


def _request(value: Any = 1, **more: Any) -> Request:
    steps = [{"do": "call", "name": "f", "args": ["x"], "observe": True}]
    args = {"x": {"k": "v", "v": value}}
    return Request(
        {"max_bytes": MIB, "dtype": "float32", "buffers": [], "args": args, "steps": steps, **more}
    )


def _run(engine: Engine, source: str, *values: Any, **limits: Any) -> Run:
    requests = [_request(value) for value in values or (1,)]
    run = engine.run(textwrap.dedent(source).encode(), "answer.py", ["f"], requests, Limits(**limits))
    engine.settle()
    return run


def _zygote(engine: Engine) -> int:
    _run(engine, _RIGHT)
    return engine.zygotes[0].pid


def _gone(pids: set[int], seconds: float = 5.0) -> bool:
    """Whether all have ended within the time; a process that waits to be collected has ended."""
    deadline = time.monotonic() + seconds
    while any(map(_running, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _scratch() -> set[str]:
    return {entry.name for entry in Path(tempfile.gettempdir()).glob("mhaquiz-*")}


@pytest.fixture
def own() -> Iterator[Engine]:
    """An engine of the test's own, for what would disturb the shared one."""
    with Engine() as running:
        yield running


def test_replies_come_in_order(engine: Engine) -> None:
    """One frame a request, then the digests."""
    run = _run(engine, "print('loaded')\ndef f(x):\n    print('called', x)\n    return x * 2\n", 1, 2, 3)
    assert run.outcome is Outcome.RETURNED
    assert [frame.header["results"][0]["v"] for frame in run.frames] == ["2", "4", "6"]
    assert run.stdout == "loaded\n" + "".join(f"called {n}\n" for n in (1, 2, 3))
    assert run.digests == ((), (), ())
    assert run.seconds > 0


def test_each_run_is_a_fresh_process(engine: Engine) -> None:
    """Nothing of one submission reaches the next, not even by the library's own objects."""
    source = """
    import os, torch
    seen = getattr(torch, "mark", None)
    torch.mark = 1
    def f(x):
        return [os.getpid(), seen]
    """
    items = [_run(engine, source).frames[0].header["results"][0]["i"] for _ in range(2)]
    assert items[0][0] != items[1][0]
    assert items[0][1]["v"] is items[1][1]["v"] is None


def test_a_run_that_ends_early_keeps_what_it_answered(engine: Engine) -> None:
    """The frames up to there."""
    run = _run(engine, "import os\ndef f(x):\n    return x if x < 2 else os._exit(5)\n", 0, 1, 2, 3)
    assert (run.outcome, len(run.frames), run.digests) == (Outcome.KILLED, 2, None)
    assert run.detail == "its process ended itself with status 5"


def test_processor_time_is_limited(engine: Engine) -> None:
    """By the system itself, told apart from other signals."""
    run = _run(engine, "def f(x):\n    while True:\n        pass\n", cpu_seconds=1, wall_seconds=30.0)
    assert (run.outcome, run.detail) == (Outcome.TIME_LIMIT, "it took more than 1 s of processor time")


def test_closed_channel(engine: Engine) -> None:
    """A process that goes on without its channel has ended itself."""
    run = _run(engine, "import os, time\ndef f(x):\n    os.close(3)\n    time.sleep(60)\n")
    assert run.outcome is Outcome.KILLED
    run = _run(
        engine,
        "import time, socket\ndef f(x):\n    socket.socket(fileno=3).shutdown(2)\n    time.sleep(60)\n",
    )
    assert (run.outcome, run.detail) == (Outcome.KILLED, "it closed the channel to the grader")


def test_a_child_that_holds_the_channel_delays_nothing(engine: Engine) -> None:
    """The end of the runner itself counts."""
    source = "import os, time\ndef f(x):\n    if os.fork() == 0:\n        time.sleep(60)\n    os._exit(3)\n"
    started = time.monotonic()
    assert _run(engine, source).detail == "its process ended itself with status 3"
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    "leaving",
    [
        "subprocess.Popen(['sleep', '60'])",
        "subprocess.Popen(['sleep', '60'], start_new_session=True)",
        "_fork(1)",
        "_fork(2)",
        "_fork(3)",
    ],
)
def test_nothing_started_outlives_the_run(engine: Engine, leaving: str) -> None:
    """Children, sessions of their own, daemons at any depth: gone before the run returns."""
    source = f"""
    import os, signal, subprocess, time

    def _fork(depth):
        if depth == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
            os._exit(0)
        if os.fork() == 0:
            os.setsid()
            _fork(depth - 1)
        elif depth < 3:
            os._exit(0) if os.getpid() != runner else None

    runner = os.getpid()

    def f(x):
        {leaving}
        time.sleep(0.2)
        return x
    """
    zygote = _zygote(engine)
    assert _run(engine, source).outcome is Outcome.RETURNED
    assert descendants(zygote) == set()


def test_processes_that_fled_are_counted(engine: Engine) -> None:
    """A session of its own, or a parent that has ended, hides none from the limits."""
    source = """
    import os, time
    def f(x):
        for _ in range(12):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(0)
        time.sleep(60)
    """
    run = _run(engine, source, processes=8)
    assert (run.outcome, run.detail) == (Outcome.PROCESS_LIMIT, "it started more than 8 processes")
    assert descendants(engine.zygotes[0].pid) == set()


def test_memory_of_children_is_counted(engine: Engine) -> None:
    """Each beyond what it was forked with."""
    source = """
    import os, time
    def f(x):
        for _ in range(3):
            if os.fork() == 0:
                kept = b"x" * (90 * 2**20)
                time.sleep(60)
        time.sleep(60)
    """
    assert _run(engine, source, memory_bytes=200 * MIB).outcome is Outcome.MEMORY_LIMIT


def test_zygote_killed_between_runs_is_replaced(own: Engine) -> None:
    """The next run knows nothing of it."""
    first = _zygote(own)
    os.kill(first, signal.SIGKILL)
    run = _run(own, _RIGHT)
    assert (run.outcome, own.zygotes[0].pid != first) == (Outcome.RETURNED, True)


def test_zygote_killed_during_a_run_is_replaced(own: Engine, tmp_path: Path) -> None:
    """The submission is run once more, from the start."""
    mark = tmp_path / "mark"
    source = f"""
    import os, pathlib, time
    mark = pathlib.Path({str(mark)!r})
    if not mark.exists():
        mark.touch()
        os.kill(os.getppid(), 9)
        time.sleep(30)
    def f(x):
        return x
    """
    assert _run(own, source).outcome is Outcome.RETURNED
    assert mark.exists()


def test_killing_the_zygote_twice_is_the_submissions_doing(own: Engine) -> None:
    """Its own outcome, never a fault of the grader's; what it started goes with it."""
    source = "import os, time\nup = os.getppid()\ndef f(x):\n    os.fork()\n    os.kill(up, 9)\n    time.sleep(60)\n"
    run = _run(own, source)
    assert (run.outcome, run.detail) == (Outcome.KILLED, "it ended the process that runs it, twice")
    assert _run(own, _RIGHT).outcome is Outcome.RETURNED


def test_zygote_that_crashes_is_replaced(own: Engine) -> None:
    """A fault of our own, once, costs nobody anything."""
    _zygote(own)
    assert own.zygotes[0]._control is not None
    own.zygotes[0]._control.sendall(b"no json\n")
    assert _run(own, _RIGHT).outcome is Outcome.RETURNED


def test_zygote_that_crashes_every_time_is_our_fault(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never the submission's; the last words are the cause."""
    started = Zygote._started

    def crash(zygote: Zygote) -> int:
        pid = started(zygote)
        assert zygote._control is not None
        zygote._control.sendall(b"no json\n")
        return pid

    monkeypatch.setattr(Zygote, "_started", crash)
    with pytest.raises(GraderError, match="the grader's runner stopped") as caught:
        _run(own, "import time\ntime.sleep(30)\n")
    assert "JSONDecodeError" in caught.value.cause


def test_zygote_that_does_not_start_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the interpreter are the cause; nothing stays behind."""

    monkeypatch.setattr(plain, "GUEST", ROOT / "nowhere")
    before = _scratch()
    with (
        Engine(Plain()) as engine,
        pytest.raises(GraderError, match="the grader's runner did not start") as caught,
    ):
        _run(engine, _RIGHT)
    assert "nowhere" in caught.value.cause
    assert caught.value.next_step == "mhaquiz doctor"
    assert _scratch() - before == set()


def test_sandbox_that_is_not_there_says_why() -> None:
    """Before anything is started."""

    class Absent(Plain):
        def available(self) -> str | None:
            return "this system has none"

    with pytest.raises(GraderError, match="no submission can be run here") as caught:
        Engine(Absent()).start()
    assert caught.value.cause == "this system has none"


def test_close_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, no folder; closing twice and before the start are fine; a closed engine starts anew."""
    # A temporary folder of its own: other engines come and go beside this test.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = _scratch()
    engine = Engine()
    engine.close()
    zygote = _zygote(engine)
    assert len(_scratch() - before) == 1
    engine.close()
    engine.close()
    assert _gone({zygote})
    assert _scratch() - before == set()
    assert _run(engine, _RIGHT).outcome is Outcome.RETURNED
    engine.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_host_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """Neither on the keyboard interrupt, nor when it is killed itself."""
    script = tmp_path / "host.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(ROOT)!r})
            from grader.guest.wire import Request
            from grader.host.engine import Engine
            source = b"import os, time\\ndef f():\\n    os.fork(); time.sleep(60)\\n"
            steps = [{{"do": "call", "name": "f", "args": [], "observe": True}}]
            header = {{"max_bytes": 1, "dtype": "float32", "buffers": [], "args": {{}}, "steps": steps}}
            with Engine() as engine:
                engine.zygotes[0]._wait_ready()
                print(engine.zygotes[0].pid, flush=True)
                engine.run(source, "answer.py", ["f"], [Request(header)])
            """
        )
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as host:
        assert host.stdout is not None
        zygote = int(host.stdout.readline())
        deadline = time.monotonic() + 20
        while len(descendants(zygote)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        family = {zygote, *descendants(zygote)}
        assert len(family) >= 3
        host.send_signal(number)
        host.wait(timeout=20)
    assert _gone(family)
    deadline = time.monotonic() + 5
    while list(tmp_path.glob("mhaquiz-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(tmp_path.glob("mhaquiz-*")) == []


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident() -> int:
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0])


def test_many_runs_leak_nothing(engine: Engine) -> None:
    """No descriptors on either side, no growing memory, no folders; whatever way they end."""
    sources = [
        _RIGHT,
        "def f(x):\n    raise ValueError\n",
        "import os\nos._exit(0)\n",
        "f = 1\n",
        "def f(:\n",
    ]
    _run(engine, _RIGHT)
    enclosed = engine.zygotes[0].enclosed
    assert enclosed is not None
    zygote = Path(f"/proc/{engine.zygotes[0].pid}/fd")
    before = (
        _descriptors(),
        len(list(zygote.iterdir())),
        len(list(Path(enclosed.scratch).iterdir())),
        _resident(),
    )
    for number in range(30):
        _run(engine, sources[number % len(sources)])
    after = (
        _descriptors(),
        len(list(zygote.iterdir())),
        len(list(Path(enclosed.scratch).iterdir())),
        _resident(),
    )
    assert after[:3] == before[:3]
    assert after[2] == 0
    assert after[3] - before[3] < 8 * 1024


def test_runner_has_an_empty_folder_and_no_descriptors(engine: Engine) -> None:
    """It sees its own file, its channel and its output; no answer, no source of ours on the import path."""
    source = """
    import os, sys
    def f(x):
        opened = [n for n in range(256) if os.path.exists(f"/proc/self/fd/{n}")]
        ours = [path for path in sys.path if "guest" in path or "grader" in path]
        return [sorted(os.listdir()), [n for n in opened if n > 3], ours, sorted(os.environ)]
    """
    found = _run(engine, source).frames[0].header["results"][0]["i"]
    lists = [[item["v"] for item in part["i"]] for part in found]
    assert lists[:3] == [["answer.py"], [], []]
    assert set(lists[3]) <= {*guest_environment(), "HOME", "TMPDIR", "LC_CTYPE"} | {
        # Set by the library at its own import.
        name
        for name in lists[3]
        if name.startswith(("TORCH", "PYTORCH", "KMP", "TRITON"))
    }


def test_environment_holds_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is named is passed on."""
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("HOME", "/home/someone")
    assert {"API_TOKEN", "HOME"} & set(guest_environment()) == set()
    assert guest_environment()["OMP_NUM_THREADS"] == "1"


def test_usage_counts_what_is_below() -> None:
    """Processes and the memory they filled; nothing for who has none."""
    with subprocess.Popen(["sleep", "30"]) as process:
        found = usage(os.getpid())
        assert found.processes >= 1
        assert usage(process.pid).processes == 0
        assert usage(os.getpid(), shared_bytes=1 << 40).memory_bytes == 0
        process.kill()


def test_scratch_is_removed_whatever_it_holds(tmp_path: Path) -> None:
    """Deeper than the interpreter's stack, locked, with links out of it: what they point at stays."""
    outside = tmp_path / "outside"
    outside.write_text("kept")
    folder = tmp_path / "scratch"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "locked").mkdir()
    (folder / "locked" / "file").touch()
    (folder / "locked").chmod(0)
    home = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for _ in range(sys.getrecursionlimit() + 100):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.fchdir(home)
        os.close(home)
    remove(str(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert outside.read_text() == "kept"
