"""Whatever is handed in gets its own clear verdict, and the next grade on the same engine is right.

One file a case: tests/submissions/bad (with what each gets) and tests/submissions/odd (unusual, but right).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from grader import api, judge
from grader.host.engine import Engine
from grader.host.limits import MIB
from grader.render.terminal import render_terminal
from grader.report import Outcome, Report, Verdict

FOLDER = Path(__file__).resolve().parents[1] / "submissions"
BAD, ODD = FOLDER / "bad", FOLDER / "odd"
_OURS = ("Traceback", "zygote", "harness", "site-packages", "_guest", "mhaquiz-")

_problem_limits = judge.limits


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a problem, but small enough to be reached in a test."""
    small = {"memory_bytes": 300 * MIB, "processes": 20, "output_bytes": MIB}
    monkeypatch.setattr(judge, "limits", lambda problem: replace(_problem_limits(problem), **small))


@pytest.fixture
def _shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what never ends by itself."""
    monkeypatch.setattr(
        judge, "limits", lambda problem: replace(_problem_limits(problem), wall_seconds=1.0, cpu_seconds=2)
    )


@dataclass(frozen=True)
class Wanted:
    """What a submission gets: the verdict, how its run ended, and words that must be in the report."""

    verdict: Verdict
    outcome: Outcome
    words: str
    where: str = ""


def _invalid(words: str, where: str = "") -> Wanted:
    return Wanted(Verdict.INVALID, Outcome.RAISED, words, where)


def _failed(words: str, outcome: Outcome = Outcome.RETURNED) -> Wanted:
    return Wanted(Verdict.FAILED, outcome, words)


def _raised(words: str) -> Wanted:
    return _failed("your code raised " + words, Outcome.RAISED)


def _ended(outcome: Outcome, words: str) -> Wanted:
    return _failed(words, outcome)


_HARNESS = "the run ended before your code returned: it broke the part of the grader that runs beside it"
_UNASKED = "the run's answers could not be read: an answer came to a question that was not asked"

WANTED = {
    # Cannot be loaded.
    "empty": _invalid("the file is empty; it must define `split_heads`"),
    "only_comments": _invalid("the file does not define `split_heads`"),
    "syntax_error": _invalid("the file is not valid Python: '(' was never closed", "syntax_error.py:5:18"),
    "wrong_name": _invalid("found `splitheads`, did you mean `split_heads`?"),
    "no_function": _invalid("the file does not define `split_heads`"),
    "not_callable": _invalid("`split_heads` is a list, not something that can be called"),
    "raises_at_import": _invalid("importing the file raised KeyError: 'missing'", "raises_at_import.py:7"),
    "exits_at_import": _invalid("importing the file raised SystemExit: 0", "exits_at_import.py:8"),
    "interrupts_at_import": _invalid("importing the file raised KeyboardInterrupt"),
    "imports_missing": _invalid("No module named 'nonexistent_package_of_nobody'", "imports_missing.py:1"),
    "nul": _invalid("the file holds NUL bytes, so it is no Python source", "nul.py:2"),
    "utf16": _invalid("the file holds NUL bytes, so it is no Python source"),
    "binary": _invalid("the file holds NUL bytes, so it is no Python source"),
    "not_utf8": _invalid("the file is not UTF-8 text", "not_utf8.py:1"),
    "unknown_coding": _invalid(
        "the file is not valid Python: unknown encoding: klingon", "unknown_coding.py:1"
    ),
    "mixed_tabs": _invalid("inconsistent use of tabs and spaces in indentation", "mixed_tabs.py:3"),
    "deep_nesting": _invalid(
        "the file is not valid Python: too many nested parentheses", "deep_nesting.py:1"
    ),
    "deep_expression": _invalid("the file could not be compiled: its expressions are nested too deeply"),
    # Cannot be called, or raises.
    "too_few_parameters": _raised(
        "TypeError: `split_heads(x)` cannot be called as `split_heads(x, num_heads)`"
    ),
    "too_many_parameters": _raised(
        "TypeError: `split_heads(x, num_heads, mask)` cannot be called as `split_heads(x, num_heads)`"
    ),
    "keyword_only_other": _raised(
        "TypeError: `split_heads(x, *, heads)` cannot be called as `split_heads(x, num_heads)`"
    ),
    "raises_inside": _raised("RuntimeError: shape '["),
    "raises_odd_message": _raised("Odd: (its message cannot be read)"),
    "raises_surrogates": _raised("ValueError: ? \x1b[31m <b>"),
    "lies_in_str": _raised("Odd: odd"),
    "recursion": _raised("RecursionError: maximum recursion depth exceeded"),
    "not_written": _raised("NotImplementedError"),
    "exits_inside": _raised("SystemExit: 0"),
    "system_exit": _raised("SystemExit: done"),
    "keyboard_interrupt": _raised("KeyboardInterrupt"),
    "absurd_allocation": _raised("RuntimeError: [enforce fail"),
    "big_file": _raised("OSError: [Errno 27] File too large"),
    "walks_gc": _raised("LookupError: no such tensor here"),
    "walks_frames": _raised("LookupError: no such tensor here"),
    "imports_reference": _raised("LookupError: nothing to import"),
    "secrets": _raised("LookupError: nothing to find"),
    "returns_numpy": _raised("TypeError: Got unsupported ScalarType BFloat16"),
    "zeroes_input": _ended(Outcome.RAISED, "30 of 30 elements are wrong; out[0, 0, 0, 0] is 0, expected"),
    # Ends its process.
    "hard_exit": _ended(Outcome.KILLED, "its process ended itself with status 0"),
    "hard_exit_at_import": _ended(Outcome.KILLED, "its process ended itself with status 0"),
    "parent_of_fork_exits": _ended(Outcome.KILLED, "its process ended itself with status 0"),
    "null_read": _ended(Outcome.KILLED, "its process ended with signal SIGSEGV"),
    "shrinks_storage": _ended(Outcome.KILLED, "its process ended with signal SIGSEGV"),
    "abort": _ended(Outcome.KILLED, "its process ended with signal SIGABRT"),
    "kills_itself": _ended(Outcome.KILLED, "its process ended with signal SIGTERM"),
    "realtime_signal": _ended(Outcome.KILLED, "its process ended with signal 40"),
    "kills_parent": _ended(Outcome.KILLED, "it ended the process that runs it, twice"),
    # Runs into a limit.
    "endless_loop": _ended(
        Outcome.TIME_LIMIT, "the run was stopped at the time limit: it took more than 1 s"
    ),
    "endless_loop_at_import": _ended(Outcome.TIME_LIMIT, "it took more than 1 s"),
    "ignores_signals": _ended(Outcome.TIME_LIMIT, "it took more than 1 s"),
    "sleeps": _ended(Outcome.TIME_LIMIT, "it took more than 1 s"),
    "huge_output": _ended(Outcome.OUTPUT_LIMIT, "it printed more than 1 MiB"),
    "memory_bomb": _ended(Outcome.MEMORY_LIMIT, "it took more than 300 MiB of memory"),
    "python_memory_bomb": _ended(Outcome.MEMORY_LIMIT, "it took more than 300 MiB of memory"),
    "shows_the_stack": _raised("ValueError: see above"),
    "fork_bomb": _ended(Outcome.PROCESS_LIMIT, "it started more than 20 processes"),
    "fork_returns_twice": _ended(Outcome.PROCESS_LIMIT, "it started more than 20 processes"),
    "patches_exit": _ended(Outcome.PROCESS_LIMIT, "your code returned None"),
    # Returns something else.
    "returns_none": _failed("your code returned None, expected a tensor"),
    "returns_list": _failed("your code returned a list of 2, expected a tensor"),
    "returns_tuple": _failed("your code returned a tuple of 2, expected a tensor"),
    "returns_self_list": _failed("your code returned a list of 1, expected a tensor"),
    "returns_subclass": _failed("your code returned submission.Mine, expected a tensor"),
    "returns_function": _failed("your code returned builtins.function, expected a tensor"),
    "returns_sparse": _failed("its layout is sparse_coo on cpu"),
    "returns_meta": _failed("its layout is strided on meta"),
    "returns_complex": _failed("its dtype complex64"),
    "returns_conj": _failed("its dtype complex64"),
    "returns_negated": _failed("your code returned a lazily negated tensor"),
    "returns_quantized": _failed("its dtype qint8"),
    "returns_huge_view": _failed("the result has shape (1099511627776, 1048576), expected (2, 1, 3, 5)"),
    "returns_nan": _failed("30 of 30 elements are NaN"),
    "returns_shadowed_strides": _failed("the result does not share memory with x"),
    "swaps_data": _failed("the result does not share memory with x"),
    "fails_only_traced": _failed("the result does not share memory with x"),
    "late_write": _failed("the result does not share memory with x"),
    "thread_left": _failed("1 thread was still running after the call returned"),
    # Tampers with the channel, the library or the harness.
    "closes_everything": _ended(Outcome.KILLED, _HARNESS),
    "garbage_on_channel": _ended(Outcome.REFUSED, "a frame's header is too large"),
    "floods_channel": _ended(Outcome.REFUSED, "a frame's header is no JSON"),
    "forged_frame": _ended(Outcome.REFUSED, _UNASKED),
    "forged_failure": _ended(Outcome.REFUSED, _UNASKED),
    "forged_shapes": _ended(Outcome.REFUSED, _UNASKED),
    "forged_huge_frame": _ended(Outcome.REFUSED, "a frame is too large"),
    "patches_builtins": _ended(Outcome.KILLED, _HARNESS),
    "patches_torch": _ended(Outcome.KILLED, "it broke the part of the grader that runs beside it"),
    "patches_json": _failed("the result has shape (2, 3, 5), expected (2, 1, 3, 5)"),
    "patches_modules": _failed("the result has shape (2, 3, 5), expected (2, 1, 3, 5)"),
    "patches_recorder": _failed("108 of 120 elements are wrong"),
    "hooks_at_exit": _failed("the result has shape (2, 3, 5), expected (2, 1, 3, 5)"),
}
# Right answers that leave a mess: the verdict is theirs, the mess is ours to clear.
# Where walls stop what `plain` lets happen. The first process of a family of its own is sent no signal that would end
# it but the last one, and has no parent.
WALLED = {
    ("bubblewrap", "abort"): _ended(Outcome.KILLED, "its process ended with signal SIGSEGV"),
    ("bubblewrap", "kills_itself"): _failed("your code returned None"),
    ("bubblewrap", "realtime_signal"): _failed("your code returned None"),
    ("bubblewrap", "kills_parent"): _failed("your code returned None"),
    ("landlock", "kills_parent"): _raised("PermissionError: [Errno 1] Operation not permitted"),
    ("landlock", "locked_folder"): _invalid("importing the file raised PermissionError"),
    ("landlock", "stops_parent"): _invalid("importing the file raised PermissionError"),
}
MESSY = ("deep_folders", "locked_folder", "double_fork", "stops_parent")
_ENDLESS = ("endless_loop", "endless_loop_at_import", "ignores_signals", "sleeps")


def _report(path: Path, engine: Engine) -> Report:
    return api.grade("split-heads", path, engine=engine, seed="1")


def _text(report: Report) -> str:
    told = [f"{check.message} {check.why} {check.reason}" for check in report.checks]
    error = report.error or {}
    return "\n".join([*told, report.run.detail, str(error.get("what"))])


def _assert_words(report: Report, wanted: Wanted) -> None:
    assert wanted.words in _text(report)
    assert wanted.where in str((report.error or {}).get("where", ""))


def _assert_nothing_of_ours(report: Report) -> None:
    text = render_terminal(report, width=100, color=False)
    text.encode()
    assert [word for word in _OURS if word in text] == []


def _assert_next_is_right(engine: Engine) -> None:
    report = _report(ODD / "as_strided.py", engine)
    assert report.verdict is Verdict.PASSED
    assert report.run.stdout == ""


def test_every_bad_submission_has_its_expectation() -> None:
    """No file is left out, and no expectation has lost its file."""
    assert {path.stem for path in BAD.glob("*.py")} == {*WANTED, *MESSY}


@pytest.mark.parametrize("name", [name for name in WANTED if name not in _ENDLESS])
def test_bad_submission(name: str, enclosed: Engine) -> None:
    """It gets its verdict, in words that show nothing of the grader's inside; the next grade is unaffected."""
    wanted = WALLED.get((enclosed.sandbox.name, name), WANTED[name])
    report = _report(BAD / f"{name}.py", enclosed)
    assert report.verdict is wanted.verdict
    # Whether its children outgrow the limit before its last answer is a race that it may win: it fails either way.
    also = {Outcome.RETURNED} if name == "patches_exit" else set()
    assert report.run.outcome in {wanted.outcome, *also}
    _assert_words(report, wanted)
    _assert_nothing_of_ours(report)
    _assert_next_is_right(enclosed)


@pytest.mark.usefixtures("_shortest")
@pytest.mark.parametrize("name", _ENDLESS)
def test_endless_submission(name: str, enclosed: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit ends what does not end itself."""
    wanted = WANTED[name]
    report = _report(BAD / f"{name}.py", enclosed)
    assert (report.verdict, report.run.outcome) == (wanted.verdict, wanted.outcome)
    _assert_words(report, wanted)
    monkeypatch.setattr(judge, "limits", _problem_limits)
    _assert_next_is_right(enclosed)


@pytest.mark.parametrize("name", MESSY)
def test_messy_but_right_submission(name: str, enclosed: Engine) -> None:
    """It passes, unless a wall stops what it does beside; the next grade is unaffected."""
    report = _report(BAD / f"{name}.py", enclosed)
    wanted = WALLED.get((enclosed.sandbox.name, name))
    assert report.verdict is (wanted.verdict if wanted else Verdict.PASSED)
    if wanted:
        _assert_words(report, wanted)
    _assert_next_is_right(enclosed)


@pytest.mark.parametrize("path", sorted(ODD.glob("*.py")), ids=lambda path: path.stem)
def test_odd_but_right_submission(path: Path, enclosed: Engine) -> None:
    """What is legal passes, whatever it looks like or prints."""
    report = _report(path, enclosed)
    assert (report.verdict, _text(report)) == (Verdict.PASSED, _text(report))


def test_a_traceback_has_only_the_learners_frames(engine: Engine) -> None:
    """Their own file name and lines, outermost first; nothing of torch or of the harness."""
    path = BAD / "raises_inside.py"
    trace = _report(path, engine).run.traceback or ""
    assert trace.splitlines()[:4] == [
        f"  {path}:9 in split_heads",
        "    pieces = _pieces(x, num_heads)",
        f"  {path}:5 in _pieces",
        "    return x.view(x.shape[0], x.shape[1], num_heads, 7, 1)",
    ]
    assert len(trace.splitlines()) == 5


def test_output_is_kept_and_shown(engine: Engine) -> None:
    """Both streams, in order; too much of it is cut, not refused."""
    report = _report(ODD / "prints_a_lot.py", engine)
    assert report.run.stdout.startswith("0 of the output torch.Size([2, 5, 12])\n1 of the output")
    assert len(report.run.stdout) == 64 * 1024
    assert "noise\n" in _report(ODD / "warnings.py", engine).run.stdout


def test_a_printed_stack_has_only_the_learners_frames(engine: Engine) -> None:
    """Also when it is the interpreter that prints it."""
    shown = _report(BAD / "shows_the_stack.py", engine).run.stdout
    assert 'File "shows_the_stack.py", line 8 in split_heads' in shown
    assert 'File "shows_the_stack.py", line 9, in split_heads' in shown
    assert "grader/guest" not in shown


def test_fake_verdict_on_stdout_is_only_output(engine: Engine) -> None:
    """What is printed is shown as printed and read by nobody."""
    report = _report(BAD / "hooks_at_exit.py", engine)
    assert report.run.stdout == '{"verdict": "passed", "score": {"earned": 9, "possible": 9}}\n'
