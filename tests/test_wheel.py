"""The wheel holds what the repository keeps, no less and no more, and works where there is no repository."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
# Where each part of the repository lies in the wheel.
PLACES = {"grader": "grader", "mhaquiz.py": "mhaquiz.py"} | {
    folder: f"grader/_content/{folder}" for folder in ("problems", "solutions", "templates")
}


def command(*words: str, cwd: Path, **environment: str) -> str:
    """Run a program without this environment's hints where to find modules; its standard output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        words, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def build(folder: Path) -> Path:
    """A wheel of the checkout, with the build tools that are installed here."""
    words = ("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    command(sys.executable, *words, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def kept_by_git() -> set[str]:
    """Every file of the checkout that git keeps or, while one works, would keep."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: there is no list of files to compare with")
    listed = command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


def place(name: str) -> str | None:
    """Where a file of the repository lies in the wheel; None for what stays out."""
    top, _, rest = name.partition("/")
    return "/".join(part for part in (PLACES[top], rest) if part) if top in PLACES else None


def test_the_wheel_holds_what_the_repository_keeps(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        names = wheel.namelist()
    assert len(names) == len(set(names))
    about = f"mhaquiz-{VERSION}.dist-info/"
    content = {name for name in names if not name.startswith(about)}
    assert content == {place(name) for name in kept_by_git()} - {None}
    assert {name.removeprefix(about) for name in names if name.startswith(about)} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt",
    }  # fmt: skip


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it, and an empty folder to work in."""

    environment: Path
    work: Path

    def run(self, program: str, *words: str) -> str:
        """Run a program of the environment, in the empty folder."""
        path = self.environment / "bin" / program
        return command(str(path), *words, cwd=self.work, MHAQUIZ_HOME=str(self.work / "home"), COLUMNS="80")


def install(wheel: Path, folder: Path) -> Installed:
    """A fresh environment that has the wheel, and for everything else sees what is installed here."""
    environment, work = folder / "venv", folder / "work"
    work.mkdir()
    command(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=folder)
    python = str(environment / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    command(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel), cwd=folder)
    # Only now, so that pip does not take an editable install of here for the one asked for. A .pth file adds the
    # folders but not what their own .pth files add, so the checkout stays out of sight.
    (site,) = environment.glob("lib/python*/site-packages")
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.origin is not None
    seen = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(Path(torch.origin).parents[1])]
    (site / "here.pth").write_text("\n".join(dict.fromkeys(seen)) + "\n", encoding="utf-8")
    return Installed(environment, work)


WHERE = """
import sys, grader, mhaquiz
from grader.content import default_library
library = default_library()
print(grader.__file__, mhaquiz.__file__, library.packs[0].problems, library.packs[0].solutions, library.templates())
print(*sys.path, sep="\\n")
assert mhaquiz.check is grader.check and mhaquiz.__version__ == grader.__version__
print(mhaquiz.__version__)
"""


def test_the_installed_wheel_works_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    installed = install(build(tmp_path / "dist"), tmp_path)
    assert installed.run("mhaquiz", "--version") == f"mhaquiz {VERSION}\n"
    assert "split-heads" in installed.run("mhaquiz", "list")
    found, *search, version = installed.run("python", "-W", "error", "-c", WHERE).splitlines()
    (site,) = installed.environment.glob("lib/python*/site-packages")
    inside = (
        "grader/__init__.py",
        "mhaquiz.py",
        *(PLACES[one] for one in ("problems", "solutions", "templates")),
    )
    assert found.split(" ") == [str(site / name) for name in inside]
    assert str(ROOT) not in search
    assert version == VERSION
    linted = installed.run("mhaquiz", "lint", "split-token")
    assert linted.startswith("ok split-token")
    assert "1 problems pass the gate" in linted
