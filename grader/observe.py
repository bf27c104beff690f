"""What a run produced, as facts: `Observation` and `TensorFacts`. No judgement.

The same decoding serves a submission's replies and those of the reference, so that a check compares like
with like. A reply that is not well-formed is the runner's doing and raises `wire.Malformed`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from grader.guest.harness import DTYPES, to_bytes
from grader.guest.wire import Frame, Malformed
from grader.report import Outcome, Place


@dataclass(frozen=True)
class TensorFacts:
    """One tensor of a result.

    `buffer` is the input buffer that it lies in and `offset` its first element from that buffer's start;
    `storage` numbers the distinct storages of one result. `data` holds its elements (contiguous), or is None
    when they could not be had (`note` says why).
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: str
    device: str
    layout: str = "strided"
    buffer: int | None = None
    offset: int = 0
    storage: int = -1
    requires_grad: bool = False
    flagged: str = ""
    data: torch.Tensor | None = None
    note: str = ""


@dataclass(frozen=True)
class ScalarFacts:
    """A number, bool, string or None."""

    type: str
    value: int | float | bool | str | None


@dataclass(frozen=True)
class ItemsFacts:
    """A tuple or list (a NamedTuple counts as a tuple)."""

    type: str
    items: tuple[Facts, ...]


@dataclass(frozen=True)
class MembersFacts:
    """A dictionary."""

    members: Mapping[str, Facts]


@dataclass(frozen=True)
class ForeignFacts:
    """Anything else: only its type's name is known."""

    type: str


Facts = TensorFacts | ScalarFacts | ItemsFacts | MembersFacts | ForeignFacts


@dataclass(frozen=True)
class RaisedFacts:
    """An exception: its type, its built-in bases, message and the submission's own frames, outermost first."""

    type: str
    bases: tuple[str, ...]
    message: str
    frames: tuple[tuple[Place, str], ...]

    @property
    def place(self) -> Place | None:
        """Where it was raised, as deep in the submission as it goes."""
        return self.frames[-1][0] if self.frames else None


@dataclass(frozen=True)
class Operation:
    """One traced operation.

    `kind` is explicit_copy, reshape_copy, internal_copy, cast, expansion, matmul, view or compute. `alive` counts
    the elements of the code's own copies alive just after it, by the inputs whose data they hold.
    """

    op: str
    call: str
    kind: str
    place: Place | None
    new_bytes: int
    new_elements: int
    written: int
    largest: int
    of: frozenset[str]
    alive: Mapping[frozenset[str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class GradientFacts:
    """Gradients of the asked inputs (None where there is none) and whether each parameter's is finite."""

    inputs: tuple[torch.Tensor | None, ...] = ()
    parameters: tuple[bool | None, ...] = ()
    raised: RaisedFacts | None = None


@dataclass(frozen=True)
class Observation:
    """Everything that one trial of one version showed."""

    outcome: Outcome
    results: tuple[Facts, ...] = ()
    raised: RaisedFacts | None = None
    inputs_after: tuple[torch.Tensor, ...] = ()
    versions: tuple[tuple[int, int], ...] = ()
    relabelled: frozenset[str] = frozenset()
    threads: int = 0
    operators: frozenset[str] = frozenset()
    operations: tuple[Operation, ...] | None = None
    called: Mapping[str, Place | None] = field(default_factory=dict)
    peak_bytes: int = 0
    gradient: GradientFacts | None = None
    detail: str = ""

    def leaves(self) -> tuple[TensorFacts, ...]:
        """Every tensor of the results, in order."""
        return tuple(leaf for result in self.results for leaf in leaves(result))


def leaves(facts: Facts) -> Iterator[TensorFacts]:
    """The tensors of a result, in order."""
    if isinstance(facts, TensorFacts):
        yield facts
    elif isinstance(facts, ItemsFacts):
        for item in facts.items:
            yield from leaves(item)
    elif isinstance(facts, MembersFacts):
        for member in facts.members.values():
            yield from leaves(member)


def decode(frame: Frame, source_lines: Sequence[str]) -> Observation:
    """A reply of the harness as an Observation. Raises Malformed."""
    try:
        return _Decoder(frame, source_lines).observation()
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RuntimeError,
    ) as error:
        raise Malformed(f"a reply makes no sense: {type(error).__name__}") from error


_LONGEST_NAME = 200
_LONGEST_TEXT = 8000
_MOST_EVENTS = 6000
_MOST_NAMES = 4000


def _name(value: object) -> str:
    """A name from a reply. The harness keeps them short; whoever forges one is cut."""
    return str(value)[:_LONGEST_NAME]


class _Decoder:
    def __init__(self, frame: Frame, source_lines: Sequence[str]) -> None:
        self.header = frame.header
        self.buffers = frame.buffers
        self.lines = source_lines

    def observation(self) -> Observation:
        header = self.header
        events = header.get("events")
        if events is not None and len(events) > _MOST_EVENTS:
            raise ValueError("more events than the harness keeps")
        return Observation(
            outcome=Outcome(header["outcome"]),
            results=tuple(self.facts(item) for item in header.get("results", [])),
            raised=self.raised(header["error"]) if "error" in header else None,
            inputs_after=tuple(self.flat(index) for index in header["inputs"]),
            versions=tuple((int(a), int(b)) for a, b in header["versions"]),
            relabelled=frozenset(map(str, header.get("relabelled", []))),
            threads=int(header["threads"]),
            operators=frozenset(map(_name, header["operators"][:_MOST_NAMES])),
            operations=None if events is None else tuple(self.operation(event) for event in events),
            called={_name(k): self.place(v) for k, v in list(header.get("called", {}).items())[:_MOST_NAMES]},
            peak_bytes=int(header.get("peak_bytes", 0)),
            gradient=self.gradient(header["gradient"]) if "gradient" in header else None,
        )

    def flat(self, index: int) -> torch.Tensor:
        return (
            torch.frombuffer(self.buffers[index], dtype=torch.uint8)
            if self.buffers[index]
            else torch.empty(0)
        )

    def facts(self, item: dict[str, Any]) -> Facts:
        kind = item["k"]
        if kind == "v":
            return ScalarFacts(str(item["type"]), int(item["v"]) if item["type"] == "int" else item["v"])
        if kind == "l":
            base = "tuple" if item["tuple"] else "list"
            return ItemsFacts(base, tuple(self.facts(value) for value in item["i"]))
        if kind == "d":
            return MembersFacts({str(k): self.facts(v) for k, v in item["i"].items()})
        if kind == "f":
            return ForeignFacts(_name(item["type"]))
        return self.tensor(item)

    def tensor(self, item: dict[str, Any]) -> TensorFacts:
        shape = tuple(int(n) for n in item["shape"])
        stride = item.get("stride")
        buffer = item.get("buffer")
        if min(shape, default=0) < 0 or (stride is not None and len(stride) != len(shape)):
            raise ValueError("a shape or its strides make no sense")
        data, note = None, ""
        if item.get("too_large"):
            note = "it is far larger than asked"
        elif "data" in item:
            data = self.elements(item["data"], item["dtype"], shape)
        else:
            note = f"its layout is {item['layout']} on {item['device']}, its dtype {item['dtype']}"
        return TensorFacts(
            shape=shape,
            stride=None if stride is None else tuple(int(n) for n in stride),
            dtype=_name(item["dtype"]),
            device=_name(item["device"]),
            layout=_name(item["layout"]),
            buffer=None if buffer is None else int(buffer),
            offset=int(item.get("offset", 0)),
            storage=int(item.get("storage", -1)),
            requires_grad=bool(item.get("requires_grad")),
            flagged="negated" if item.get("neg") else "conjugated" if item.get("conj") else "",
            data=data,
            note=note,
        )

    def elements(self, index: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        raw = self.buffers[index]
        if not raw:
            if math.prod(shape) != 0:
                raise ValueError("elements are missing")
            return torch.empty(shape, dtype=DTYPES[dtype])
        return torch.frombuffer(raw, dtype=DTYPES[dtype]).view(shape)

    def raised(self, item: dict[str, Any]) -> RaisedFacts:
        frames = []
        for frame in item["frames"][:20]:
            span = (frame["line"], frame["column"], frame["end_line"], frame["end_column"])
            place = None if None in span else self.place(span)
            frames.append(
                (place or Place(int(frame["line"]), 1, int(frame["line"]), 1), _name(frame["name"]))
            )
        return RaisedFacts(
            _name(item["type"]),
            tuple(map(_name, item["bases"][:50])),
            str(item["message"])[:_LONGEST_TEXT],
            tuple(frames),
        )

    def operation(self, event: dict[str, Any]) -> Operation:
        return Operation(
            op=_name(event["op"]),
            call=_name(event["call"]),
            kind=_name(event["kind"]),
            place=self.place(event["place"]),
            new_bytes=int(event["new_bytes"]),
            new_elements=int(event["new_elements"]),
            written=int(event["written"]),
            largest=int(event["largest"]),
            of=frozenset(map(_name, event["of"])),
            alive={frozenset(filter(None, names.split(","))): int(n) for names, n in event["alive"].items()},
        )

    def gradient(self, item: dict[str, Any]) -> GradientFacts:
        if "error" in item:
            return GradientFacts(raised=self.raised(item["error"]))
        grads = []
        for entry in item["inputs"]:
            empty = entry is None or entry["data"] is None
            grads.append(
                None if empty else self.elements(entry["data"], entry["dtype"], tuple(entry["shape"]))
            )
        return GradientFacts(tuple(grads), tuple(None if p is None else bool(p) for p in item["parameters"]))

    def place(self, span: Any) -> Place | None:
        """A span from the harness: lines from 1, columns in UTF-8 bytes from 0. Ours count characters from 1."""
        if span is None:
            return None
        line, column, end_line, end_column = (int(n) for n in span)
        return Place(
            line, self._characters(line, column) + 1, end_line, self._characters(end_line, end_column) + 1
        )

    def _characters(self, line: int, column: int) -> int:
        if not 0 < line <= len(self.lines):
            return column
        return len(self.lines[line - 1].encode()[:column].decode(errors="ignore"))


def digests(observation: Observation) -> list[str]:
    """What the harness's second look must give for an untouched observation, tensor by tensor."""
    found = [leaf.data for leaf in observation.leaves() if leaf.data is not None]
    return [hashlib.blake2b(to_bytes(data), digest_size=16).hexdigest() for data in found]
