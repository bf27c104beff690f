"""From a problem's cases to concrete calls: `Trial`s with seeded inputs, ready for any version to run.

A trial says nothing of answers. What a runner is sent of it (`Trial.request`) holds bytes, shapes and
strides, but no seed, no tolerance, no phase and no case name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import torch

from grader.errors import GraderError
from grader.guest.harness import DTYPES, to_bytes
from grader.guest.wire import Request
from grader.layouts import Strided, lay_out
from grader.spec.model import (
    OMIT,
    Case,
    DictInput,
    ErrorCase,
    Input,
    ListInput,
    ModuleInput,
    Problem,
    Step,
    TensorInput,
)
from grader.spec.shapes import evaluate, parse_shape, resolve_sizes
from grader.values import Wish, make_values

FLOATS = ("float64", "float32", "bfloat16", "float16")


class Phase(StrEnum):
    """Why a trial is run, which decides how its numbers are judged.

    exact: bit-equal. logic: double precision, a fixed relative bound. hygiene: lower precision, against the
    error of an honest version. error: bad input.
    """

    EXACT = "exact"
    LOGIC = "logic"
    HYGIENE = "hygiene"
    ERROR = "error"


@dataclass(frozen=True)
class TensorArg:
    """A tensor argument: which buffer it is a view of, and how."""

    name: str
    buffer: int
    view: Strided
    dtype: str

    def of(self, buffers: Sequence[torch.Tensor]) -> torch.Tensor:
        """The argument's elements, as a view of the given buffers."""
        return buffers[self.buffer].as_strided(self.view.shape, self.view.stride, self.view.offset)


@dataclass(frozen=True)
class Twin:
    """A trial to be compared with an earlier one of the same version.

    `same`: same inputs, so same results. `past`: inputs differ from position `cut` on, so results before agree.
    """

    relation: str
    index: int
    cut: int = 0


@dataclass(frozen=True)
class Trial:
    """One concrete call. `gradient_of` names the inputs whose gradients are judged (then values are not)."""

    case: str
    visible: bool
    phase: Phase
    dtype: str
    sizes: Mapping[str, int]
    tree: Mapping[str, Any]
    buffers: tuple[torch.Tensor, ...]
    arguments: tuple[TensorArg, ...]
    steps: tuple[Mapping[str, Any], ...]
    key: str
    gradient_of: tuple[str, ...] = ()
    parameters: bool = False
    cotangents: tuple[torch.Tensor | None, ...] = ()
    traced: bool = False
    profiled: bool = False
    twin: Twin | None = None
    raises: str | None = None
    unchanged: tuple[str, ...] = ()
    only: frozenset[str] | None = None
    skip: frozenset[str] = frozenset()
    device: str = "cpu"

    def looks_at(self, check: str) -> bool:
        """Whether this check looks at this trial's case."""
        return check not in self.skip and (self.only is None or check in self.only)

    def argument(self, name: str) -> TensorArg:
        """The first tensor argument of that name; KeyError when there is none."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(name)

    def named(self, buffer: int | None) -> str | None:
        """The name of the input that lies in a buffer."""
        return next((a.name for a in self.arguments if a.buffer == buffer), None)

    def in_precision(self, dtype: str) -> Trial:
        """The same numbers, exactly, in a wider precision: for the oracle."""
        wide = tuple(b.to(DTYPES[dtype]) if b.is_floating_point() else b for b in self.buffers)
        cotangents = tuple(c if c is None else c.to(DTYPES[dtype]) for c in self.cotangents)
        return replace(self, dtype=dtype, buffers=wide, cotangents=cotangents)

    def request(self, max_bytes: int) -> Request:
        """What a runner is sent."""
        buffers = list(self.buffers)
        header: dict[str, Any] = {
            "dtype": self.dtype,
            "device": self.device,
            "max_bytes": max_bytes,
            "args": self.tree,
            "steps": list(self.steps),
            "trace": self.traced,
            "profile": self.profiled,
        }
        if self.gradient_of or self.parameters:
            pairs: list[tuple[int | None, list[int]]] = []
            for cotangent in self.cotangents:
                pairs.append((None, []) if cotangent is None else (len(buffers), list(cotangent.shape)))
                buffers += [] if cotangent is None else [cotangent.reshape(-1)]
            header["gradient"] = {"of": self.gradient_of, "parameters": self.parameters, "cotangents": pairs}
        header["buffers"] = [
            {"dtype": str(b.dtype).removeprefix("torch."), "numel": b.numel()} for b in buffers
        ]
        return Request(header, [*self._raw, *(to_bytes(buffer) for buffer in buffers[len(self.buffers) :])])

    @cached_property
    def _raw(self) -> list[bytearray]:
        """The buffers' bytes, made once however many versions run this trial."""
        return [to_bytes(buffer) for buffer in self.buffers]


@dataclass
class _Maker:
    """Makes the arguments of one trial."""

    problem: Problem
    sizes: Mapping[str, int]
    dtype: str
    generator: torch.Generator
    graded: frozenset[str]
    buffers: list[torch.Tensor] = field(default_factory=list)
    arguments: list[TensorArg] = field(default_factory=list)

    def tree(self, name: str, spec: Input) -> dict[str, Any]:
        if isinstance(spec, TensorInput):
            return self.tensor(name, spec)
        if isinstance(spec, ListInput):
            return {"k": "l", "i": [self.tree(name, item) for item in spec.items]}
        if isinstance(spec, DictInput):
            return {"k": "d", "i": {key: self.tree(name, item) for key, item in spec.members.items()}}
        if isinstance(spec, ModuleInput):
            return self.library_module(name, spec)
        return {"k": "v", "v": evaluate(spec, self.sizes) if isinstance(spec, str) else spec}

    def tensor(self, name: str, spec: TensorInput) -> dict[str, Any]:
        shape = parse_shape(spec.shape).resolve(self.sizes)
        dtype = self.dtype if spec.dtype == "float" else spec.dtype
        kind = spec.values or (
            "bool" if dtype == "bool" else "ids" if dtype.startswith("int") else self.problem.values
        )
        wish = Wish(shape, dtype, spec.options, self.sizes, self.generator)
        return self.place(name, make_values(kind, wish), dtype, lay_out(shape, spec.layout, self.sizes))

    def place(self, name: str, values: torch.Tensor, dtype: str, view: Strided) -> dict[str, Any]:
        """Puts values into a buffer of their own whose other elements are noise."""
        noise = torch.randn(view.numel, generator=self.generator, dtype=torch.float64) * 50
        buffer = (noise > 0) if dtype == "bool" else noise.to(DTYPES[dtype])
        argument = TensorArg(name, len(self.buffers), view, dtype)
        self.buffers.append(buffer)
        argument.of(self.buffers).copy_(values)
        self.arguments.append(argument)
        wants = name in self.graded and DTYPES[dtype].is_floating_point
        return {
            "k": "t",
            "b": argument.buffer,
            "s": view.shape,
            "st": view.stride,
            "o": view.offset,
            "g": wants,
        }

    def library_module(self, name: str, spec: ModuleInput) -> dict[str, Any]:
        config = {key: evaluate(value, self.sizes) for key, value in spec.torch_mha.items()}
        width = int(config["embed_dim"])
        shapes: dict[str, tuple[int, ...]] = {
            "in_proj_weight": (3 * width, width),
            "out_proj.weight": (width, width),
        }
        if config.get("bias", True):
            shapes |= {"in_proj_bias": (3 * width,), "out_proj.bias": (width,)}
        state = {}
        for key, shape in shapes.items():
            scale = width**-0.5 if len(shape) == 2 else 0.5
            values = torch.randn(shape, generator=self.generator, dtype=torch.float64) * scale
            state[key] = self.place(name, values, self.dtype, lay_out(shape, "dense", self.sizes))
        return {"k": "mha", "config": config, "state": state}


def generator_for(seed: str, key: str) -> torch.Generator:
    """A generator of its own for each seed and key, the same in every process."""
    return torch.Generator().manual_seed(random.Random(f"{seed}/{key}").getrandbits(60))


def steps_of(problem: Problem, given: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """The problem's steps as the harness takes them; inputs that are omitted drop out of the calls."""
    if not problem.steps:
        return ({"do": "call", "name": problem.entry, "args": list(given), "observe": True},)
    return tuple(_step(problem, step, given) for step in problem.steps)


def _step(problem: Problem, step: Step, given: Sequence[str]) -> dict[str, Any]:
    args = [name for name in step.args if name not in problem.inputs or name in given]
    plain = {"do": step.do, "args": args, "on": step.on, "save": step.save, "observe": step.observe}
    name = step.name or ("forward" if step.do == "method" else problem.entry)
    return {**plain, "name": name}


class Planner:
    """Expands a problem's cases into trials, deterministically in the seed."""

    def __init__(self, problem: Problem, seed: str, device: str = "cpu") -> None:
        self.problem = problem
        self.seed = seed
        self.device = device
        cases: list[Case | ErrorCase] = [*problem.cases, *problem.errors]
        self._sizes = {
            case.name: resolve_sizes(case.sizes, random.Random(f"{seed}/{case.name}")) for case in cases
        }

    def trial(
        self, case: Case | ErrorCase, phase: Phase, dtype: str, key: str, graded: Sequence[str] = ()
    ) -> Trial:
        """One trial of a case."""
        sizes = self._sizes[case.name]
        full_key = f"{case.name}/{phase}/{dtype}/{key}"
        maker = _Maker(self.problem, sizes, dtype, generator_for(self.seed, full_key), frozenset(graded))
        specs = self._inputs(case)
        try:
            tree = {name: maker.tree(name, spec) for name, spec in specs.items()}
        except (ValueError, IndexError, RuntimeError, TypeError) as error:
            raise GraderError(
                f"the inputs of case `{case.name}` cannot be made",
                where=self.problem.id,
                cause=str(error),
                next_step=f"mhaquiz lint {self.problem.id}",
            ) from error
        steps = steps_of(self.problem, list(specs))
        bad = case if isinstance(case, ErrorCase) else None
        only = ["raises"] if isinstance(case, ErrorCase) else case.only
        return Trial(
            case=case.name,
            visible=case.visible,
            phase=phase,
            dtype=dtype,
            sizes=sizes,
            tree=tree,
            buffers=tuple(maker.buffers),
            arguments=tuple(maker.arguments),
            steps=steps if bad is None else steps[: bad.steps],
            key=full_key,
            gradient_of=tuple(graded),
            raises=None if bad is None else bad.raises,
            unchanged=() if bad is None else tuple(bad.unchanged),
            only=None if only is None else frozenset(only),
            skip=frozenset() if isinstance(case, ErrorCase) else frozenset(case.skip),
            device=self.device,
        )

    def _inputs(self, case: Case | ErrorCase) -> dict[str, Input]:
        specs = {**self.problem.inputs, **case.inputs}
        specs = {name: spec for name, spec in specs.items() if spec != OMIT}
        if isinstance(case, ErrorCase):
            return specs
        for name, layout in case.layouts.items():
            specs[name] = _tensor_input(specs[name]).model_copy(update={"layout": layout})
        for name, kind in case.values.items():
            specs[name] = _tensor_input(specs[name]).model_copy(update={"values": kind})
        return specs


def _tensor_input(spec: Input) -> TensorInput:
    assert isinstance(spec, TensorInput)
    return spec
