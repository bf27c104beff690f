"""Batches: every submission its own report, by the same numbers; what goes wrong with one costs no other anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.batch import Event, grade_many
from grader.guest.family import descendants
from grader.host.engine import Engine
from grader.judge import Submission, Task
from grader.report import Outcome, Verdict
from tests.tiny import tiny

ROOT = Path(__file__).resolve().parents[1]
_RIGHT = b"def answer(x):\n    return x * 2\n"
_WRONG = b"def answer(x):\n    return x * 3\n"


@pytest.fixture(scope="module")
def two() -> Iterator[Engine]:
    """An engine of two zygotes, its own: some submissions here end them."""
    with Engine(size=2) as engine:
        yield engine


@pytest.fixture
def doubled() -> Task:
    return tiny("def reference(x):\n    return x * 2")


def _files(*sources: bytes) -> list[Submission]:
    return [Submission(source, f"{number}.py") for number, source in enumerate(sources)]


def test_each_has_its_own_report_in_order(two: Engine, doubled: Task) -> None:
    slow = b"import time\ndef answer(x):\n    time.sleep(0.05)\n    return x * 2\n"
    reports = list(grade_many(doubled, _files(slow, _WRONG, b"def answer(:\n", _RIGHT, _RIGHT), two))
    assert [report.file for report in reports] == ["0.py", "1.py", "2.py", "3.py", "4.py"]
    wanted = [Verdict.PASSED, Verdict.FAILED, Verdict.INVALID, Verdict.PASSED, Verdict.PASSED]
    assert [report.verdict for report in reports] == wanted
    assert len({report.seed for report in reports}) == 1


def test_the_reference_is_asked_once_for_a_batch(
    two: Engine, doubled: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    observe = type(doubled.versions)._observe

    def counted(versions: object, version: str, trial: object) -> object:
        asked.append(f"{version}/{trial.key}/{trial.dtype}/{trial.twin}")  # type: ignore[attr-defined]
        return observe(versions, version, trial)  # type: ignore[arg-type]

    monkeypatch.setattr(type(doubled.versions), "_observe", counted)
    list(grade_many(doubled, _files(*[_RIGHT] * 6), two))
    assert len(asked) == len(set(asked)) > 0


def test_events_tell_what_began_and_what_is_done(two: Engine, doubled: Task) -> None:
    events: list[Event] = []
    reports = list(grade_many(doubled, _files(_RIGHT, _WRONG, _RIGHT), two, on_event=events.append))
    assert sorted(event.index for event in events if event.kind == "started") == [0, 1, 2]
    finished = [event for event in events if event.kind == "finished"]
    assert [event.done for event in finished] == [1, 2, 3]
    assert {event.index: event.report for event in finished} == dict(enumerate(reports))
    assert {event.total for event in events} == {3}


def test_no_more_run_at_once_than_there_are_zygotes(two: Engine, doubled: Task) -> None:
    running: list[int] = []
    most = 0

    def watch(event: Event) -> None:
        nonlocal most
        running.append(event.index) if event.kind == "started" else running.remove(event.index)
        most = max(most, len(running))

    list(grade_many(doubled, _files(*[_RIGHT] * 6), two, on_event=watch))
    assert most == 2


def test_a_killed_zygote_costs_its_neighbours_nothing(two: Engine, doubled: Task) -> None:
    """The one that kills gets its verdict; those that ran beside it get theirs."""
    killer = b"import os, time\ndef answer(x):\n    os.kill(os.getppid(), 9)\n    time.sleep(30)\n"
    reports = list(grade_many(doubled, _files(_RIGHT, killer, _RIGHT, killer, _RIGHT), two))
    assert [report.verdict for report in reports] == [
        Verdict.PASSED, Verdict.FAILED, Verdict.PASSED, Verdict.FAILED, Verdict.PASSED,
    ]  # fmt: skip
    assert reports[1].run is not None
    assert reports[1].run.outcome is Outcome.KILLED


def test_a_zygote_killed_from_outside_is_replaced(two: Engine, doubled: Task) -> None:
    slow = b"import time\ndef answer(x):\n    time.sleep(0.1)\n    return x * 2\n"
    killed = threading.Event()

    def kill(event: Event) -> None:
        if event.kind == "finished" and not killed.is_set():
            killed.set()
            # One that is being started has no number yet; 0 would be this process's own group.
            for zygote in [zygote for zygote in two.zygotes if zygote.pid]:
                os.kill(zygote.pid, signal.SIGKILL)

    reports = list(grade_many(doubled, _files(*[slow] * 4), two, on_event=kill))
    assert [report.verdict for report in reports] == [Verdict.PASSED] * 4


def test_who_stops_early_leaves_nothing_running(two: Engine, doubled: Task) -> None:
    slow = b"import time\ndef answer(x):\n    time.sleep(0.05)\n    return x * 2\n"
    done: list[Event] = []
    reports = grade_many(doubled, _files(*[slow] * 40), two, on_event=done.append)
    assert next(reports).verdict is Verdict.PASSED
    reports.close()
    two.settle()
    assert sum(event.kind == "finished" for event in done) < 10
    assert all(descendants(zygote.pid) == set() for zygote in two.zygotes)


def test_a_clock_that_jumps_ends_no_run(two: Engine, doubled: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are kept by a clock that nobody sets."""
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert [r.verdict for r in grade_many(doubled, _files(_RIGHT, _RIGHT), two)] == [Verdict.PASSED] * 2


def test_keyboard_interrupt_ends_every_child_and_keeps_what_was_graded(tmp_path: Path) -> None:
    script = tmp_path / "host.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(ROOT)!r})
            from grader.batch import grade_many
            from grader.host.engine import Engine
            from grader.judge import Submission
            from tests.tiny import tiny
            right = Submission(b"def answer(x):\\n    return x * 2\\n", "right.py")
            endless = Submission(b"def answer(x):\\n    while True: pass\\n", "endless.py")
            task = tiny("def reference(x):\\n    return x * 2")
            try:
                with Engine(size=2) as engine:
                    for report in grade_many(task, [right, right, endless, endless, endless], engine):
                        print(report.verdict.value, [z.pid for z in engine.zygotes], flush=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
        )
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as host:
        assert host.stdout is not None
        lines = [host.stdout.readline() for _ in range(2)]
        time.sleep(0.5)
        family = descendants(host.pid)
        assert len(family) >= 4
        host.send_signal(signal.SIGINT)
        rest = host.stdout.read()
        host.wait(timeout=8)
    assert [line.split()[0] for line in lines] == ["passed", "passed"]
    assert "interrupted" in rest
    deadline = time.monotonic() + 10
    while any(map(_running, family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_running, family))


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False
