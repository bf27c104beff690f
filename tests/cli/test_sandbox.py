"""`mhaquiz sandbox check` says what works here, what is held, and what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from grader.host.sandbox import backends, conformance
from grader.host.sandbox.promise import Kind, Promise
from tests.cli.conftest import Run

HELD = Promise("still", "it stands still", Kind.SEES, "def probe():\n    return ''\n")
BROKEN = Promise("ground", "it stays on the ground", Kind.WRITES, "def probe():\n    return 'it flies'\n")
FAILED = Promise("word", "it keeps its word", Kind.WRITES, "def probe():\n    return lenght\n")
DANGEROUS = Promise("small", "it stays small", Kind.LIMITS, "def probe():\n    return ''\n", dangerous=True)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only promises that are held."""
    monkeypatch.setattr(conformance, "PROMISES", (HELD, DANGEROUS))


@pytest.fixture
def none_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap and without the packages."""
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.setitem(sys.modules, "sandlock", None)


def strict() -> str:
    """A strict sandbox that works here."""
    for sandbox in backends():
        if sandbox.holds_strangers and sandbox.available() is None:
            return sandbox.name
    pytest.skip("no strict sandbox works here")


@pytest.mark.usefixtures("few")
def test_a_sandbox_that_holds(run: Run, home: Path) -> None:
    name = strict()
    result = run("sandbox", "check", "--backend", name)
    assert result.exit_code == 0
    assert f"{name}  for other people's code\n  ✓  sees nothing of others: 1 of 1 held\n" in result.stdout
    assert "  ✓  is held to its limits: 0 of 0 held, 1 not tried\n" in result.stdout
    assert (
        f"\nOther people's code may run here under {name}.\nNext: mhaquiz sandbox check --dangerous"
        in result.stdout
    )
    assert not home.exists()


@pytest.mark.usefixtures("few")
def test_dangerous_tries_the_rest(run: Run) -> None:
    result = run("sandbox", "check", "--backend", strict(), "--dangerous")
    assert "  ✓  is held to its limits: 1 of 1 held\n" in result.stdout
    assert "Next:" not in result.stdout


def test_a_sandbox_that_does_not_hold(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "PROMISES", (HELD, BROKEN, FAILED))
    result = run("sandbox", "check", "--backend", strict())
    assert result.exit_code == 1
    assert (
        "  ✗  writes only to its scratch folder: 0 of 2 held\n"
        "     ground, not held: it stays on the ground\n"
        "       but it flies\n"
        "     word, could not be tried, a fault of mhaquiz: it keeps its word\n"
        "       but the probe went wrong: NameError: name 'lenght' is not defined\n"
        "     So a submission changes files that are not its own.\n"
    ) in result.stdout
    assert (
        "No sandbox looked at here holds other people's code: do not grade it here.\n"
        "Next: update the kernel and mhaquiz; where `ground` stays broken, report it with what is printed above\n"
    ) in result.stdout


@pytest.mark.usefixtures("few", "none_strict")
def test_a_machine_without_any(run: Run) -> None:
    result = run("sandbox", "check", COLUMNS="200")
    assert result.exit_code == 1
    assert (
        "bubblewrap  for other people's code\n  does not work here: bubblewrap is not installed: install bubblewrap "
        "(apt install bubblewrap, dnf install bubblewrap)\n"
    ) in result.stdout
    assert (
        "landlock  for other people's code\n  does not work here: the package sandlock is missing: "
        "python -m pip install 'mhaquiz[sandbox]'\n"
    ) in result.stdout
    assert "plain  for your own code only\n  ✓  sees nothing of others: 1 of 1 held\n" in result.stdout
    assert result.stdout.endswith(
        "mhaquiz uses plain here.\nNo sandbox looked at here holds other people's code: do not grade it here.\n"
        "Next: make bubblewrap work as said above, then mhaquiz sandbox check\n"
    )


def test_plain_alone_is_no_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told in full only when asked for by its name."""
    monkeypatch.setattr(conformance, "PROMISES", (BROKEN,))
    result = run("sandbox", "check", "--backend", "plain")
    assert result.exit_code == 1
    assert "     ground, not held: it stays on the ground\n" in result.stdout
    assert result.stdout.endswith("Next: mhaquiz sandbox check\n")


def test_the_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "PROMISES", (BROKEN,))
    result = run("sandbox", "check", "--backend", "plain", "--format", "json", MHAQUIZ_SANDBOX="plain")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["chosen"], document["holds_strangers"], document["error"]) == ("plain", False, None)
    assert document["sandboxes"] == [
        {
            "name": "plain",
            "for_strangers": False,
            "available": True,
            "reason": None,
            "holds": False,
            "promises": [
                {
                    "id": "ground",
                    "kind": "writes",
                    "title": "it stays on the ground",
                    "result": "broken",
                    "detail": "it flies",
                }
            ],
        }
    ]


@pytest.mark.usefixtures("few")
def test_a_choice_that_cannot_be_met_is_said(run: Run) -> None:
    result = run("sandbox", "check", "--backend", "plain", MHAQUIZ_SANDBOX="no-such")
    assert result.exit_code == 1
    assert (
        "mhaquiz can use none here: there is no sandbox `no-such`. set it to one of bubblewrap, "
        in result.stdout
    )


def test_an_unknown_sandbox(run: Run) -> None:
    result = run("sandbox", "check", "--backend", "bubblewarp")
    assert result.exit_code == 2
    assert "there is no sandbox `bubblewarp`" in result.stderr
    assert "name one of bubblewrap, landlock, plain" in result.stderr
    assert run("sandbox", "chek").exit_code == 2
