"""The files of a new problem: a small real one, complete enough for the gate, that an author then edits.

Pure text: nothing here reads or writes a file (grader/cli/new.py does).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Scaffold:
    """The text of the two files."""

    problem: str
    solution: str


def is_name(text: str) -> bool:
    """Whether `text` may be the ID of a problem or the name of a track."""
    return NAME.fullmatch(text) is not None


def scaffold(problem: str, track: str) -> Scaffold:
    """The files of the problem called `problem`; ValueError when the ID or the track is no such name."""
    if not is_name(problem) or not is_name(track):
        raise ValueError(f"not a name: {problem!r}, {track!r}")
    entry = _entry(problem)
    fill = {"@ID@": problem, "@TRACK@": track, "@ENTRY@": entry}
    return Scaffold(_filled(_PROBLEM, fill), _filled(_SOLUTION, fill))


def _entry(problem: str) -> str:
    """The function's name: the ID with underscores, with a letter in front where it begins with a digit."""
    name = problem.replace("-", "_")
    return f"f_{name}" if name[0].isdigit() else name


def _filled(text: str, fill: dict[str, str]) -> str:
    for mark, value in fill.items():
        text = text.replace(mark, value)
    return text


_PROBLEM = '''\
# yaml-language-server: $schema=problem.schema.json
# `mhaquiz schema > problem.schema.json` beside this file gives completion and checks in an editor.
# This is a small real problem that passes `mhaquiz lint`. Change one thing at a time and run it again.
format: 1
id: @ID@
title: Scale and pair the features
track: @TRACK@
level: 1                        # 1 warm-up, 2 easy, 3 medium, 4 hard, 5 expert
minutes: 5
requires: []                    # IDs of problems to solve first
summary: Turn (B, P*2) into pairs (B, P, 2), each number doubled.
signature: @ENTRY@(x)
entry: @ENTRY@
statement: |
  `x` has shape `(B, 2 * P)`: each row holds `P` pairs, one after the other. Return twice the numbers as
  `(B, P, 2)`, so that `out[b, p]` is pair `p` of row `b`.

  - The input is left as it was.
  - `x` need not be contiguous.

  **Worked example.** `B = 1, P = 2`:

      x[0] = [ 1  2 | 3  4 ]          out[0] = [[2, 4], [6, 8]]
starter: |
  import torch


  def @ENTRY@(x: torch.Tensor) -> torch.Tensor:
      """Double x and split its last axis into pairs.

      Args:
          x: (B, 2 * P), not necessarily contiguous.

      Returns:
          (B, P, 2), twice the numbers of x.
      """
      raise NotImplementedError
inputs:                         # the arguments, in the order of the call
  x: {shape: B (P 2)}           # a group in brackets is a product
returns: B P 2
numbers: exact                  # exact: only moves, sums and products of integers; else real
values: positions               # every element says where it came from
cases:                          # all sizes different, some odd; 1 is worth a case of its own
  - {name: a small batch, visible: true, sizes: {B: 3, P: 5}}
  - {name: one row, sizes: {B: 1, P: 7}}
  - {name: every other feature, visible: true, sizes: {B: 4, P: 3}, layouts: {x: strided}}
  - {name: sizes drawn afresh, sizes: {B: 2..4, P: 5..9}}
checks:                         # beside those every problem has; see docs for the list
  - gradient
mistakes:                       # each is `wrong_<id>` in the solution file, with underscores
  - id: halves-paired
    title: paired across the two halves
    what: You split the row into two halves and paired feature p of the first with feature p of the second.
    why: >-
      The last axis holds the pairs one after the other, so its outer part is P and its inner part is 2. The
      shape comes out right either way, and nothing complains.
    fix: Give the last axis its parts in the order they lie in memory, (P, 2), and transpose nothing.
  - id: not-doubled
    title: not doubled
    what: You paired the features and returned the numbers unchanged.
    why: Only half of the exercise is done.
    fix: Multiply by 2.
hints:                          # three, each of more help than the one before
  - Which two numbers does the last axis factor into, and which of them comes first in memory?
  - Neighbours stay together, so the inner part is 2 and the outer part is P.
  - "`x.unflatten(-1, (-1, 2))` makes the pairs; then multiply."
followups:
  - question: Does the split itself copy anything?
    approach: >-
      No. Splitting an axis only describes the same memory with one stride more. The multiplication makes
      new memory, because it makes new numbers.
    weak: Yes, reshaping always copies.
red_flags:
  - A reshape moves the data.
real_systems:
  - name: "Replace me: a library or a model"
    fact: what it does that this problem practises
    source: the file or the paper where it can be seen
when_not:
  - "Replace me: when is this the wrong thing to do?"
references:
  - {title: "Tensor views, PyTorch documentation", where: "torch.Tensor.unflatten"}
'''

_SOLUTION = '''\
"""Versions of @ENTRY@: the reference, other right ways and known wrong ones."""

import torch


def reference(x):
    return 2 * x.unflatten(-1, (-1, 2))


def right_reshape(x):
    return x.reshape(x.shape[0], -1, 2) * 2


def right_stack(x):
    return torch.stack((x[:, 0::2], x[:, 1::2]), dim=-1) * 2


def right_added(x):
    pairs = x.unflatten(-1, (x.shape[-1] // 2, 2))
    return pairs + pairs


def wrong_halves_paired(x):
    return 2 * x.unflatten(-1, (2, -1)).transpose(1, 2)


def wrong_not_doubled(x):
    return x.unflatten(-1, (-1, 2))
'''
