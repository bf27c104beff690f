"""Every sandbox that works here holds its promises, and every probe can tell: without walls it finds what is open.

A strict sandbox that does not work here is skipped, with the reason. Where MHAQUIZ_REQUIRE_SANDBOX is set it fails.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from grader.errors import GraderError
from grader.host.limits import Limits
from grader.host.sandbox import backends, conformance, interpreter
from grader.host.sandbox.bait import VARIABLE
from grader.host.sandbox.base import Enclosed
from grader.host.sandbox.conformance import PROMISES, breaks, check
from grader.host.sandbox.plain import Plain
from grader.host.sandbox.promise import Held, Kind, OnPlain, Promise, Result
from grader.report import Outcome

REQUIRED = "MHAQUIZ_REQUIRE_SANDBOX"
STRICT = {sandbox.name: sandbox for sandbox in backends() if sandbox.holds_strangers}
IDS = [promise.id for promise in PROMISES]
Checked = Callable[[str], dict[str, Held]]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """The promises of a sandbox, all tried once, with a home and a record to find."""
    folder = tmp_path_factory.mktemp("user")
    for name in ("home/.key", "state/mhaquiz.db"):
        path = folder / name
        path.parent.mkdir()
        path.write_text("secret")

    @cache
    def tried(name: str) -> dict[str, Held]:
        sandbox = Plain() if name == "plain" else STRICT[name]
        reason = sandbox.available()
        if reason is not None:
            (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"{name}: {reason}")
        return {held.promise.id: held for held in check(sandbox, True, [folder / "state"])}

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        yield tried


def test_every_promise_has_a_name_of_its_own_and_every_kind_has_some() -> None:
    assert len(set(IDS)) == len(IDS)
    assert {promise.kind for promise in PROMISES} == set(Kind)


@pytest.mark.parametrize("promise", IDS)
@pytest.mark.parametrize("name", STRICT)
def test_a_strict_sandbox_holds(checked: Checked, name: str, promise: str) -> None:
    """Each promise, those that load the host among them."""
    held = checked(name)[promise]
    assert held.result in (Result.HELD, Result.NOT_TRIED), f"{held.promise.title}; but {held.detail}"


@pytest.mark.parametrize("name", STRICT)
def test_what_is_not_tried_is_what_this_machine_has_not(checked: Checked, name: str) -> None:
    """A full check leaves nothing out that could be tried here."""
    reasons = {held.detail for held in checked(name).values() if held.result is Result.NOT_TRIED}
    assert all("this processor" in reason or "are not known here" in reason for reason in reasons), reasons


@pytest.mark.parametrize("promise", IDS)
def test_without_walls_every_probe_finds_what_is_open(checked: Checked, promise: str) -> None:
    """And holds only what the grader itself does without a sandbox."""
    held = checked("plain")[promise]
    may_be = {
        OnPlain.BREAKS: {Result.BROKEN},
        OnPlain.HOLDS: {Result.HELD},
        OnPlain.VARIES: {Result.BROKEN, Result.HELD, Result.NOT_TRIED},
    }
    assert held.result in may_be[held.promise.plain], held.detail


def test_a_check_leaves_nothing_on_the_host(checked: Checked) -> None:
    checked("plain")
    assert VARIABLE not in os.environ
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib")
    left = [path.name for place in places for path in Path(place).glob("mhaquiz-*")]
    assert not [name for name in left if name.startswith("mhaquiz-check-")]
    assert not [name for name in left if len(name) == len("mhaquiz-") + 16]


def promise(probe: str, outcome: Outcome = Outcome.RETURNED, **more: object) -> Promise:
    return Promise("one", "it holds", Kind.SEES, probe, outcomes=(outcome,), **more)  # type: ignore[arg-type]


WENT_WRONG = {
    "a typo": ("def probe():\n    return lenght\n", "NameError: name 'lenght' is not defined"),
    "no text": ("def probe():\n    return None\n", "its answer is no text"),
    "a call that is no refusal": (
        "def probe():\n    return could(os.read, 999, 1)\n",
        "OSError: [Errno 9] Bad file descriptor",
    ),
    "a fork that goes wrong": (
        "def probe():\n    return in_child(lambda: 1 / 0)\n",
        "RuntimeError: the fork of the probe went wrong",
    ),
    "no Python": ("def probe(:\n", "it cannot be loaded: invalid syntax"),
    "an end of its own": (
        "def probe():\n    os._exit(3)\n",
        "killed: its process ended itself with status 3",
    ),
}


def test_a_probe_that_goes_wrong_holds_nothing() -> None:
    """Whatever goes wrong: it is reported as the probe's own fault, in words."""
    found = check(Plain(), promises=[promise(probe) for probe, _ in WENT_WRONG.values()])
    assert [held.result for held in found] == [Result.FAILED] * len(WENT_WRONG)
    assert [held.detail for held in found] == [
        f"the probe went wrong: {why}" for _, why in WENT_WRONG.values()
    ]
    assert not any(held.held for held in found)
    assert list(breaks(found)) == found


def test_what_a_probe_says_is_what_came_of_the_promise() -> None:
    waits = "def probe():\n    time.sleep(0.1)\n    return ''\n"
    found = check(
        Plain(),
        promises=[
            promise("def probe():\n    return ''\n"),
            promise("def probe():\n    return 'it flies'\n"),
            promise("def probe():\n    return 'untried: no wings'\n"),
            promise("def probe():\n    return ''\n", left=lambda bait: "a feather is left"),
            promise(waits, Outcome.TIME_LIMIT),
            promise(waits, Outcome.TIME_LIMIT, limits=Limits(wall_seconds=0.02)),
            promise("def probe():\n    return ''\n", before="def probe():\n    return lenght\n"),
            promise("def probe():\n    return ''\n", dangerous=True),
        ],
    )
    assert [(str(held.result), held.detail) for held in found] == [
        ("held", ""),
        ("broken", "it flies"),
        ("not_tried", "no wings"),
        ("broken", "a feather is left"),
        ("broken", "it was not ended: time_limit was expected"),
        ("held", ""),
        ("failed", "the run before it went wrong: NameError: name 'lenght' is not defined"),
        ("not_tried", "it loads the host: tried with --dangerous"),
    ]


def test_a_host_that_hands_its_environment_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the grader holds without a sandbox, its probe can tell as well."""
    kept = interpreter.guest_environment
    monkeypatch.setattr(interpreter, "guest_environment", lambda: {**kept(), VARIABLE: os.environ[VARIABLE]})
    (held,) = check(Plain(), promises=[one for one in PROMISES if one.id == "environment"])
    assert (held.result, held.detail) == (Result.BROKEN, f"it has {VARIABLE}, {VARIABLE}")


class Broken(Plain):
    """Cannot enclose its runners."""

    def start(self, control: int) -> Enclosed:
        raise GraderError("no submission can be run here", cause="it is broken")


def test_a_sandbox_that_cannot_run_anything_is_an_error() -> None:
    with pytest.raises(GraderError, match="no submission can be run here"):
        check(Broken())
    assert VARIABLE not in os.environ


def test_the_dangerous_ones_are_bounded() -> None:
    """No probe can take more than a few hundred MiB or processes, even where no limit holds."""
    assert {one.id for one in conformance.PROMISES if one.dangerous} == {
        "memory", "memory-of-children", "memory-shared", "processes", "output", "scratch-size", "scratch-files",
        "scratch-removed", "scratch-locked",
    }  # fmt: skip
