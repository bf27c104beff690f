"""For data-movement stages: which input element landed where, read off position-encoded values.

Nothing is guessed: a result is traced only where its value names exactly one input element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from grader.inputs import Trial
from grader.spec.model import Problem, TensorInput
from grader.spec.shapes import Shape, parse_shape

_NOUNS = {
    "B": "batch row", "S": "token", "H": "head", "K": "K/V head", "G": "group member", "d": "feature",
    "D": "feature", "Sq": "query", "Sk": "key",
}  # fmt: skip
_SHOWN = 6


@dataclass(frozen=True)
class Origin:
    """Where a value came from: an input and the coordinates along its named factors."""

    name: str
    coordinates: Mapping[str, int]


@dataclass(frozen=True)
class Moved:
    """One result element that holds another input element than it should."""

    index: tuple[int, ...]
    holds: Origin
    expected: Origin


def position_inputs(problem: Problem, trial: Trial) -> list[str]:
    """Inputs whose values say where they were on this trial."""
    names = []
    for argument in trial.arguments:
        spec = problem.inputs.get(argument.name)
        if isinstance(spec, TensorInput) and (spec.values or problem.values) == "positions":
            flat = argument.of(trial.buffers).double().flatten()
            if flat.numel() > 1 and torch.equal(
                flat - flat[0], torch.arange(flat.numel(), dtype=torch.float64)
            ):
                names.append(argument.name)
    return names


def moved(problem: Problem, trial: Trial, expected: torch.Tensor, actual: torch.Tensor) -> list[Moved]:
    """The first few elements that came from somewhere else. Empty when values do not tell."""
    names = position_inputs(problem, trial)
    if not names or expected.shape != actual.shape:
        return []
    wrong = torch.nonzero(expected.double() != actual.double())
    found = []
    for row in itertools.islice(wrong.tolist(), 200):
        index = tuple(row)
        holds = _origin(problem, trial, names, float(actual[index]))
        should = _origin(problem, trial, names, float(expected[index]))
        if holds is not None and should is not None:
            found.append(Moved(index, holds, should))
        if len(found) == _SHOWN:
            break
    return found


def _origin(problem: Problem, trial: Trial, names: Sequence[str], value: float) -> Origin | None:
    origins = []
    for name in names:
        argument = trial.argument(name)
        base = float(argument.of(trial.buffers).double().flatten()[0])
        position = value - base
        if position % 1 == 0 and 0 <= position < math.prod(argument.view.shape):
            spec = problem.inputs[name]
            assert isinstance(spec, TensorInput)
            origins.append(Origin(name, _coordinates(parse_shape(spec.shape), trial, int(position))))
    return origins[0] if len(origins) == 1 else None


def _coordinates(shape: Shape, trial: Trial, position: int) -> dict[str, int]:
    """The coordinates of a flat position along every named factor of a shape."""
    found: list[tuple[str, int]] = []
    for axis in reversed(shape.axes):
        for factor in reversed(axis.factors):
            size = factor.value if isinstance(factor.value, int) else trial.sizes[factor.value]
            found.append((str(factor.value), position % size))
            position //= size
    return dict(reversed(found))


def words(origin: Origin, other: Origin, *, inputs: int) -> str:
    """An origin in words, by what tells it from the other: `head 1 of token 0`."""
    differing = [k for k, v in origin.coordinates.items() if other.coordinates.get(k) != v]
    shown = differing or list(origin.coordinates)
    parts = [f"{_NOUNS.get(key, key)} {origin.coordinates[key]}" for key in reversed(shown)]
    text = " of ".join(parts)
    return f"{origin.name}: {text}" if inputs > 1 or origin.name != other.name else text
