"""`import mhaquiz` gives the API of `import grader`, as lazily."""

from __future__ import annotations

import subprocess
import sys

import pytest

import grader
import mhaquiz


@pytest.mark.parametrize("name", ["check", "grade", "load_problem", "Report"])
def test_the_alias_gives_the_same_objects(name: str) -> None:
    assert getattr(mhaquiz, name) is getattr(grader, name)
    assert name in dir(mhaquiz)


def test_the_alias_is_no_second_package() -> None:
    assert not hasattr(mhaquiz, "__path__")
    with pytest.raises(AttributeError, match="module 'mhaquiz' has no attribute 'nothing'"):
        _ = mhaquiz.nothing


def test_importing_the_alias_imports_no_torch() -> None:
    code = "import mhaquiz, sys; print('torch' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
