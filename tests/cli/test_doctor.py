"""The doctor finds what prevents a grade, says the remedy and changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from grader.cli import doctor
from grader.cli.common import App, Look
from grader.cli.doctor import Level
from grader.host.sandbox import backends, choose
from tests.cli.conftest import Record, Run


def test_a_sound_machine(run: Run, home: Path) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    for name in (
        "python", "processes", "packages", "yaml", "torch", "problems", "state", "record", "temporary",
        "sandbox", "terminal",
    ):  # fmt: skip
        assert f" {name} " in result.stdout
    assert "✗" not in result.stdout
    assert result.stdout.endswith("Next: mhaquiz\n")
    assert not home.exists()


def test_the_json_of_doctor(run: Run) -> None:
    document = json.loads(run("doctor", "--format", "json").stdout)
    assert document["healthy"] is True
    assert document["error"] is None
    assert {finding["level"] for finding in document["findings"]} <= {"ok", "warn"}
    assert set(document["findings"][0]) == {"name", "level", "says", "remedy"}


def test_what_prevents_grading_is_exit_code_1(run: Run, pack: Path) -> None:
    (pack / "solutions" / "mine" / "pair-up.py").unlink()
    result = run("doctor", "--problems", str(pack), "--format", "json")
    assert result.exit_code == 1
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert findings["problems"]["says"] == "pair-up has no solution file"
    text = run("doctor", "--problems", str(pack)).stdout
    assert "✗ problem problems   pair-up has no solution file\n" in text
    assert (
        "1 of 11 prevent grading; each has its remedy.\nNext: follow the remedies, then mhaquiz doctor\n"
        in text
    )


def test_a_broken_problem_file_is_named(pack: Path) -> None:
    path = pack / "problems" / "mine" / "pair-up.yaml"
    path.write_text("format: 1\n", encoding="utf-8")
    finding = doctor.content(App(packs=(pack,)))
    assert finding.level is Level.PROBLEM
    assert str(path) in finding.says
    assert finding.remedy == "mhaquiz lint names every mistake"


def test_an_old_python() -> None:
    assert doctor.python((3, 10, 4)).level is Level.PROBLEM
    assert doctor.python((3, 10, 4)).says == "3.10.4; 3.11 or newer is needed"
    assert doctor.python((4, 0, 0)).level is Level.OK


def test_a_system_without_fork() -> None:
    assert doctor.processes(forks=False).level is Level.PROBLEM
    assert "WSL" in doctor.processes(forks=False).remedy


def test_a_missing_package() -> None:
    finding = doctor.packages(("click", "no-such-package-here"))
    assert finding.level is Level.PROBLEM
    assert finding.says == "not installed: no-such-package-here"
    assert finding.remedy == f"{sys.executable} -m pip install no-such-package-here"


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (
            "import no_such_torch",
            "it cannot be imported: ModuleNotFoundError: No module named 'no_such_torch'",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its import was killed by signal 9"),
        ("print('no json')", "it cannot be imported"),
        ("import time; time.sleep(60)", "importing it took more than 1 s and was stopped"),
        (
            """print('{"version": "2.5.1+cpu", "cuda": null, "mps": false}')""",
            "2.5.1+cpu; 2.6 or newer is needed",
        ),
    ],
)
def test_a_torch_that_cannot_be_used(probe: str, says: str) -> None:
    finding = doctor.torch_import(sys.executable, 1, probe)
    assert (finding.level, finding.says) == (Level.PROBLEM, says)
    assert finding.remedy == f"{sys.executable} -m pip install 'torch>=2.6'"


def test_an_interpreter_that_is_not_there() -> None:
    assert doctor.torch_import("/no/such/python").says.startswith("Python cannot be started: ")


def test_every_device_is_named() -> None:
    probe = """print('{"version": "2.13.0", "cuda": "Some GPU", "mps": true}')"""
    assert doctor.torch_import(sys.executable, 20, probe).says == "2.13.0; devices: cpu, cuda (Some GPU), mps"


def test_a_state_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    finding = doctor.folder(tmp_path / "file" / "home")
    assert finding.level is Level.WARN
    assert "attempts and hints are not remembered" in finding.says
    assert finding.remedy == "set MHAQUIZ_HOME to a folder you can write to"
    assert doctor.folder(tmp_path / "new").says == f"{tmp_path / 'new'} (made when first needed)"
    assert doctor.folder(tmp_path).says == str(tmp_path)


def test_the_record(record: Record, home: Path) -> None:
    assert doctor.database().says == "no attempts yet"
    record()
    assert doctor.database().says == f"{home / 'mhaquiz.db'} is sound"
    (home / "mhaquiz.db").write_text("no database")
    finding = doctor.database()
    assert finding.level is Level.WARN
    assert finding.says.startswith("the record of your attempts cannot be read: file is not a database")
    assert finding.remedy.startswith("mv ")


def test_a_temporary_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    finding = doctor.temporary()
    assert finding.level is Level.PROBLEM
    assert finding.remedy == "free some space, or set TMPDIR"


def test_a_terminal_that_shows_ascii_only() -> None:
    finding = doctor.terminal(Look(color=False, width=80, unicode=False, plain=False), "ascii")
    assert finding.level is Level.WARN
    assert finding.says == "ascii, 80 columns, no colour; drawn in ASCII"


def test_the_sandbox_in_force_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    used = choose()
    finding = doctor.sandbox(App())
    assert finding.says.startswith(f"{used.name}: ")
    assert finding.level is (Level.OK if used.holds_strangers else Level.WARN)
    monkeypatch.setenv("MHAQUIZ_SANDBOX", "no-such")
    finding = doctor.sandbox(App())
    assert (finding.level, finding.says) == (Level.PROBLEM, "there is no sandbox `no-such`")
    assert finding.remedy == "set it to one of bubblewrap, landlock, plain"


def test_a_machine_with_no_sandbox_for_others_code_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.setitem(sys.modules, "sandlock", None)
    finding = doctor.sandbox(App())
    assert finding.level is Level.WARN
    assert finding.says == (
        "plain: a process of its own with limits on time, memory and output, for your own code; "
        "do not grade other people's code with it"
    )
    assert finding.remedy == (
        "bubblewrap: bubblewrap is not installed: install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
    )
    monkeypatch.undo()
    monkeypatch.setenv("MHAQUIZ_SANDBOX", "plain")
    if any(one.holds_strangers and one.available() is None for one in backends()):
        assert doctor.sandbox(App()).remedy == "unset MHAQUIZ_SANDBOX"
