"""Every renderer's output for every sample equals its golden file. goldens.py writes them anew."""

from __future__ import annotations

import pytest
from goldens import FOLDER, render_goldens

RENDERED = render_goldens()


@pytest.mark.parametrize("path", sorted(RENDERED))
def test_output_equals_its_golden_file(path: str) -> None:
    assert RENDERED[path] == (FOLDER / path).read_bytes().decode("utf-8")


def test_no_golden_file_is_stale() -> None:
    kept = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*")}
    assert kept == set(RENDERED)
