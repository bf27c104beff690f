"""Problems of a few elements, made in code, for tests of the judging core: `tiny` and `two_results`.

Every one has the entry `answer`. What a test does not name is as plain as can be.
"""

from __future__ import annotations

import textwrap
from typing import Any

from grader.judge import Task
from grader.spec.model import Problem
from grader.versions import Versions

PLAIN: dict[str, Any] = {"name": "plain", "visible": True, "sizes": {"B": 2, "S": 5, "D": 3}}
_TEXTS: dict[str, Any] = {
    "format": 1, "id": "tiny", "title": "Tiny", "track": "mha", "level": 1, "minutes": 1,
    "summary": "A small one.", "statement": "Do it.", "signature": "answer(x)", "entry": "answer",
    "starter": "def answer(x):\n    raise NotImplementedError\n",
    "hints": ["one", "two", "three"],
    "followups": [{"question": "Why?", "approach": "Because.", "weak": "No idea."}],
    "red_flags": ["It copies."],
    "real_systems": [{"name": "nanoGPT", "fact": "It does.", "source": "model.py"}],
    "when_not": ["Kernels."],
    "references": [{"title": "Attention", "where": "2017"}],
}  # fmt: skip


def mistake(name: str) -> dict[str, str]:
    """A known mistake of the problem."""
    return {"id": name, "title": name, "what": f"You did {name}.", "why": "It matters.", "fix": "Undo it."}


def tiny(solution: str, **fields: Any) -> Task:
    """A problem made ready to judge by; `solution` defines `reference` and may define wrong versions."""
    plain: dict[str, Any] = {
        "inputs": {"x": {"shape": "B S D"}},
        "returns": "B S D",
        "numbers": "exact",
        "values": "positions",
        "cases": [PLAIN],
        "mistakes": [mistake("some-mistake")],
    }
    problem = Problem.model_validate({**_TEXTS, **plain, **fields})
    source = "import torch\n\n" + textwrap.dedent(solution).strip() + "\n"
    return Task(problem, Versions(problem, source, "solutions/mha/tiny.py"), "revision")


def case(name: str = "plain", **fields: Any) -> dict[str, Any]:
    """A case of the plain sizes, but for what is named."""
    return {**PLAIN, "name": name, **fields}


def code(text: str) -> str:
    """A submission: `torch` is imported, indentation is taken off."""
    return "import torch\n\n\n" + textwrap.dedent(text).strip() + "\n"
