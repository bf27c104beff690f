"""The sandboxes: which one is taken, what they show and hide, and that a wall which cannot be raised stops a run."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from grader.errors import GraderError, UsageError
from grader.guest.wire import Request
from grader.host import sandbox
from grader.host.engine import Engine
from grader.host.sandbox import bubblewrap, folders, landlock, syscalls
from grader.host.sandbox.base import Sandbox
from grader.host.sandbox.plain import Plain


class _Given(Plain):
    """A sandbox of a name, which holds strangers or not and works or not."""

    def __init__(self, name: str, holds: bool, reason: str | None) -> None:
        self.name = name
        self.holds_strangers = holds
        self._reason = reason

    def available(self) -> str | None:
        return self._reason


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets which sandboxes there are; none is asked for by the environment."""
    monkeypatch.delenv(sandbox.VARIABLE, raising=False)

    def put(strict: str | None, second: str | None = None) -> list[Sandbox]:
        known: list[Sandbox] = [
            _Given("strict", True, strict),
            _Given("second", True, second),
            _Given("plain", False, None),
        ]
        monkeypatch.setattr(sandbox, "backends", lambda hide=(): known)
        return known

    return put


def test_the_strictest_that_works_is_taken(given: Any) -> None:
    given(None)
    assert sandbox.choose().name == "strict"
    given("not installed")
    assert sandbox.choose().name == "second"
    given("not installed", "too old")
    assert sandbox.choose().name == "plain"


def test_other_peoples_code_is_never_run_without_walls(given: Any) -> None:
    given("bubblewrap is not installed", "this kernel is too old")
    with pytest.raises(UsageError, match="no sandbox that holds other people's code works here") as caught:
        sandbox.choose(strangers=True)
    assert caught.value.cause == "strict: bubblewrap is not installed; second: this kernel is too old"
    assert caught.value.next_step == "`mhaquiz sandbox check` shows what to install"


def test_the_environment_names_one(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given(None, "too old")
    monkeypatch.setenv(sandbox.VARIABLE, "plain")
    assert sandbox.choose().name == "plain"
    with pytest.raises(UsageError, match="the sandbox `plain` does not hold other people's code"):
        sandbox.choose(strangers=True)
    monkeypatch.setenv(sandbox.VARIABLE, "second")
    with pytest.raises(UsageError) as caught:
        sandbox.choose()
    assert (caught.value.where, caught.value.cause) == (sandbox.VARIABLE, "second: too old")
    monkeypatch.setenv(sandbox.VARIABLE, "stricter")
    with pytest.raises(UsageError, match="there is no sandbox `stricter`") as caught:
        sandbox.choose()
    assert caught.value.next_step == "set it to one of strict, second, plain"


def test_missing_bubblewrap_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert bubblewrap.Bubblewrap().available() == (
        "bubblewrap is not installed: install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
    )


def test_missing_packages_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> bytes:
        raise ImportError

    monkeypatch.setattr(syscalls, "compiled", absent)
    assert syscalls.missing() == (
        "the package pyseccomp is missing: python -m pip install 'mhaquiz[sandbox]'"
    )
    monkeypatch.setitem(__import__("sys").modules, "sandlock", None)
    assert landlock.Landlock().available() == (
        "the package sandlock is missing: python -m pip install 'mhaquiz[sandbox]'"
    )


def test_old_kernel_is_named() -> None:
    sandlock = pytest.importorskip("sandlock")
    needed = sandlock.min_landlock_abi()
    patch = pytest.MonkeyPatch()
    with patch.context() as changed:
        changed.setattr(sandlock, "landlock_abi_version", lambda: 4)
        reason = landlock.Landlock().available()
    assert reason == f"this kernel's Landlock is version 4, needed is {needed}: Linux 6.12 or later"


def test_refusal_of_namespaces_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What bubblewrap says, and what to do about it."""
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(syscalls, "missing", lambda: None)
    reason = bubblewrap.Bubblewrap().available()
    assert reason is not None
    assert reason.startswith(
        "bubblewrap failed (bwrap: No permissions to create new namespace): unprivileged"
    )


# What is shown and hidden


def test_interpreter_and_packages_are_readable_and_nothing_wider() -> None:
    import torch

    shown = folders.readable()
    assert any(Path(torch.__file__).is_relative_to(folder) for folder in shown)
    assert Path.home() not in shown
    assert Path("/") not in shown
    assert [a for a in shown for b in shown if a != b and a.is_relative_to(b)] == []


def test_a_pack_inside_a_readable_folder_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "readable", lambda: (tmp_path,))
    pack = tmp_path / "packs" / "solutions"
    pack.mkdir(parents=True)
    assert pack in folders.hidden([pack])
    assert Path("/elsewhere") not in folders.hidden([Path("/elsewhere")])


def test_rules_go_around_what_is_hidden(tmp_path: Path) -> None:
    """A Landlock domain allows and cannot except: every neighbour is allowed by itself."""
    for name in ("a/b", "a/c/d", "a/c/e", "f"):
        (tmp_path / name).mkdir(parents=True)
    allowed = list(landlock.around([tmp_path / "a", tmp_path / "f"], [tmp_path / "a" / "c" / "d"]))
    assert allowed == [tmp_path / "a" / "b", tmp_path / "a" / "c" / "e", tmp_path / "f"]
    assert list(landlock.around([tmp_path / "f"], [tmp_path / "f"])) == []


def test_the_filter_is_a_program_of_whole_instructions() -> None:
    pytest.importorskip("pyseccomp")
    program = syscalls.compiled()
    assert len(program) % 8 == 0
    assert len(program) // 8 > len(set(syscalls._REFUSED))


# Walls that cannot be raised


@pytest.mark.parametrize(
    ("walls", "cause"),
    [
        ({"filter": "00" * 8}, f"OSError: [Errno {errno.EINVAL}] prctl: Invalid argument"),
        ({"landlock": {"readable": None, "writable": []}}, "TypeError"),
    ],
)
def test_no_submission_runs_without_its_walls(
    walls: dict[str, Any], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the grader's fault, and says so before a line of the submission has run."""
    from grader.host.sandbox import plain

    if "landlock" in walls:
        pytest.importorskip("sandlock")
    made = plain.python
    monkeypatch.setattr(
        plain, "python", lambda guest, control, scratch, _: made(guest, control, scratch, walls)
    )
    with Engine(Plain()) as engine, pytest.raises(GraderError, match="could not be enclosed") as caught:
        engine.run(b"f = print\nprint('ran')\n", "answer.py", ["f"], [Request({})])
    assert cause in caught.value.cause
    assert caught.value.next_step == "mhaquiz sandbox check"
