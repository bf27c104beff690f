"""What every renderer gives for the samples, as files to compare with.

Run `python tests/render/goldens.py` from the repository root to write tests/render/golden anew, then read the
difference before you keep it.
"""

from __future__ import annotations

import re
from pathlib import Path

from samples import SAMPLES

from grader.render.concise import render_concise
from grader.render.github import render_github
from grader.render.html import render_html
from grader.render.json import render_json
from grader.render.terminal import render_terminal

FOLDER = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).parents[2] / "templates"
WIDTHS = (40, 80, 120)
COLORED = ("all_passed", "copied")
DOCUMENTS = ("all_passed", "copied", "hostile", "broken_problem")
PAGES = ("all_passed", "copied", "wrong_values", "wrong_mask", "wrong_fan_out", "hostile")


def render_goldens() -> dict[str, str]:
    """Every golden file: its path under the folder and its text."""
    files: dict[str, str] = {}
    for name, make in SAMPLES.items():
        report = make()
        for width in WIDTHS:
            files[f"terminal-{width}/{name}.txt"] = render_terminal(
                report, width=width, color=False, attempt=3
            )
        files[f"ascii-80/{name}.txt"] = render_terminal(report, width=80, color=False, ascii=True)
        files[f"concise/{name}.txt"] = render_concise(report)
        files[f"github/{name}.txt"] = render_github(report)
        if name in COLORED:
            files[f"color-80/{name}.txt"] = render_terminal(report, width=80, color=True, attempt=3)
        if name in DOCUMENTS:
            files[f"json/{name}.json"] = render_json(report)
        if name in PAGES:
            files[f"html/{name}.html"] = without_style(render_html(report, templates=TEMPLATES))
    files["plain-80/copied.txt"] = render_terminal(SAMPLES["copied"](), width=80, color=True, plain=True)
    return files


def without_style(page: str) -> str:
    """The page without its style sheet, which is tested on its own."""
    return re.sub(r"<style>.*</style>", "<style></style>", page, flags=re.DOTALL)


def write() -> None:
    """Replace the golden folder's files."""
    for old in FOLDER.rglob("*.*"):
        old.unlink()
    for path, text in render_goldens().items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    write()
