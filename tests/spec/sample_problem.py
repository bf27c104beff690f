"""A small valid problem file for the tests of the declarative layer, and what a broken one is told."""

from __future__ import annotations

from pathlib import Path

from grader.errors import Mistake, ProblemFileError
from grader.spec.load import load_problem

TEXT = """\
format: 1
id: swap
title: Swap two axes
track: mha
level: 2
minutes: 10
requires: [other]
summary: Swap heads and tokens.
signature: swap(x, num_heads)
entry: swap
statement: Swap them.
starter: |
  def swap(x, num_heads):
      raise NotImplementedError
inputs:
  x: {shape: B S (H d)}
  num_heads: H
returns: B H S d
numbers: exact
cases:
  - {name: plain, sizes: {B: 2, S: 5, H: 4, d: 3}}
  - {name: drawn, sizes: {B: 2..4, S: 5..9, H: [2, 3], d: 3..8}, layouts: {x: fused}, skip: [gradient]}
errors:
  - {name: uneven, inputs: {x: {shape: 2 3 10}, num_heads: 4}}
checks:
  - no_copy: {of: x}
  - allocation: {budgets: [{metric: explicit, at_most: "B*S"}]}
  - gradient
  - raises
mistakes:
  - {id: viewed, title: viewed, what: You viewed., why: Order., fix: Transpose.}
hints: [one, two, three]
followups:
  - {question: Why?, approach: Because., weak: No idea.}
red_flags: [It copies.]
real_systems:
  - {name: nanoGPT, fact: It does., source: model.py}
when_not: [Kernels.]
references:
  - {title: Attention, where: 2017}
"""
TEXT = TEXT.replace("where: 2017", 'where: "2017"')


def edited(*edits: tuple[str, str]) -> str:
    """The sample with each text replaced once; a text that is not there is an error of the test."""
    text = TEXT
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def write(folder: Path, text: str | bytes) -> Path:
    """The file `mha/swap.yaml` in a folder."""
    path = folder / "mha" / "swap.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def told(folder: Path, text: str | bytes) -> list[str]:
    """Every mistake of a file as `line:column: message`; empty when it loads."""
    path = write(folder, text)
    mistakes = _mistakes(path)
    assert all(mistake.file == str(path) for mistake in mistakes)
    return [f"{mistake.line}:{mistake.column}: {mistake.message}" for mistake in mistakes]


def _mistakes(path: Path) -> list[Mistake]:
    try:
        load_problem(path)
    except ProblemFileError as error:
        return error.mistakes
    return []
