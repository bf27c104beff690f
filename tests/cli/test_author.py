"""`new`, `schema` and `completion`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Process, Run


def test_new_writes_a_problem_that_can_be_shown(run: Run) -> None:
    result = run("new", "pair-up", "--track", "mine", "--dir", "my pack")
    assert result.exit_code == 0
    assert result.stdout == (
        "wrote my pack/problems/mine/pair-up.yaml\n"
        "wrote my pack/solutions/mine/pair-up.py\n"
        "\n"
        "Next:\n"
        "  1. edit both files: the text, the cases, the mistakes and their code\n"
        "  2. mhaquiz lint pair-up --problems 'my pack'\n"
        "  3. mhaquiz show pair-up --problems 'my pack'\n"
    )
    assert run("show", "pair-up", "--problems", "my pack").exit_code == 0


def test_new_writes_here_by_default(run: Run) -> None:
    document = json.loads(run("new", "pair-up", "--format", "json").stdout)
    assert document["files"] == ["problems/practice/pair-up.yaml", "solutions/practice/pair-up.py"]
    assert document["next"][1] == "mhaquiz lint pair-up --problems ."
    assert document["error"] is None
    assert all(Path(path).is_file() for path in document["files"])


@pytest.mark.parametrize(
    "there",
    ["problems/practice/pair-up.yaml", "solutions/practice/pair-up.py", "problems/other/pair-up.yaml"],
)
def test_new_overwrites_nothing(run: Run, there: str) -> None:
    Path(there).parent.mkdir(parents=True)
    Path(there).write_text("mine")
    result = run("new", "pair-up")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {there} exists already\n"
        f"  where: {there}\n"
        "  cause: nothing is overwritten, and nothing was written\n"
        "  next:  choose another ID, or move the file away first\n"
        "  fault: the command line, not your code\n"
    )
    assert [path for path in Path().rglob("*") if path.is_file()] == [Path(there)]
    assert Path(there).read_text() == "mine"


def test_new_refuses_an_id_that_is_taken(run: Run) -> None:
    result = run("new", "split-heads")
    assert result.exit_code == 2
    assert 'error: there is a problem called "split-heads" already\n' in result.stderr
    assert not Path("problems").exists()


@pytest.mark.parametrize(
    ("name", "next_step"),
    [("Pair_Up", "use pair-up"), ("../pair", "use pair"), ("--", "use a name such as split-heads")],
)
def test_new_refuses_an_id_of_another_form(run: Run, name: str, next_step: str) -> None:
    result = run("new", "--", name)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f'error: "{name}" cannot be the name of a problem\n  where: the ID on the command line\n'
    )
    assert f"  next:  {next_step}\n" in result.stderr


def test_new_refuses_a_track_of_another_form(run: Run) -> None:
    result = run("new", "pair-up", "--track", "../up")
    assert result.exit_code == 2
    assert 'error: "../up" cannot be the name of a track\n' in result.stderr


def test_new_says_when_it_cannot_write(run: Run) -> None:
    Path("problems").write_text("in the way")
    result = run("new", "pair-up", "--format", "json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["error"]["fault"] == "environment"
    assert "  next:  name another folder with --dir\n" in result.stderr


def test_the_schema_is_one_json_document(process: Process) -> None:
    done = process("schema")
    assert done.returncode == 0
    schema = json.loads(done.stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "statement" in schema["properties"]


@pytest.mark.parametrize(
    ("shell", "marks"),
    [("bash", "complete -o nosort"), ("zsh", "#compdef mhaquiz"), ("fish", "complete --no-files")],
)
def test_completion_scripts(run: Run, shell: str, marks: str) -> None:
    result = run("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert marks in result.stdout
    assert f"_MHAQUIZ_COMPLETE={shell}_complete" in result.stdout


def test_the_bash_script_is_valid(run: Run, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "this test needs bash"
    script = tmp_path / "complete.sh"
    script.write_text(run("completion", "bash").stdout)
    assert subprocess.run([bash, "-n", str(script)], check=False).returncode == 0


def test_an_unknown_shell(run: Run) -> None:
    result = run("completion", "tcsh")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "error: invalid value for 'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'.\n"
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("mhaquiz show split-he", "plain,split-heads"),
        ("mhaquiz hint split-he", "plain,split-heads"),
        ("mhaquiz list mh", "plain,mha"),
        ("mhaquiz list --form", "plain,--format"),
    ],
)
def test_ids_tracks_and_options_complete(process: Process, words: str, found: str) -> None:
    done = process(_MHAQUIZ_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="2")
    assert found in done.stdout.split()
    assert done.stderr == ""


def test_ids_complete_beside_a_broken_file(process: Process, pack: Path) -> None:
    (pack / "problems" / "mine" / "broken.yaml").write_text("[", encoding="utf-8")
    words = f"mhaquiz --problems {pack} show pair"
    done = process(_MHAQUIZ_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4")
    assert (done.stdout.split(), done.stderr) == (["plain,pair-up"], "")


def test_completion_with_a_pack_that_is_not_there_is_quiet(process: Process) -> None:
    done = process(
        _MHAQUIZ_COMPLETE="bash_complete", COMP_WORDS="mhaquiz --problems gone list m", COMP_CWORD="4"
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
