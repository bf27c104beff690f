"""Which operations ran, where in the submission's source, and how much new memory each took.

Facts only. `TorchFunctionMode` gives the public name, `TorchDispatchMode` the operations beneath it.
Threads started meanwhile are followed. Not seen: threads that ran before, ctypes, numpy.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

COPY_CALLS = frozenset(
    "clone contiguous repeat repeat_interleave tile cat concat concatenate stack hstack vstack dstack column_stack "
    "row_stack copy_ to type float half bfloat16 double index_select gather take take_along_dim flip fliplr flipud "
    "roll rot90 __getitem__ __setitem__ index_copy index_copy_ index_put index_put_ scatter scatter_ pad tensor "
    "masked_select block_diag narrow_copy kron fill_diagonal_ type_as new_tensor index_add index_add_ "
    "__deepcopy__ deepcopy copy select_scatter slice_scatter as_strided_copy cpu cuda".split()
)
RESHAPE_CALLS = frozenset("reshape reshape_as flatten ravel unflatten view_as".split())
COPY_OPS = frozenset(
    "clone copy_ cat stack index index_select gather repeat _to_copy flip roll constant_pad_nd repeat_interleave "
    "take masked_select index_put index_put_ scatter scatter_ select_scatter slice_scatter as_strided_scatter "
    "unfold_copy expand_copy permute_copy view_copy transpose_copy take_along_dim index_copy index_copy_ "
    "embedding".split()
)
MATMUL_OPS = frozenset("mm bmm addmm baddbmm addbmm mv dot addmv vdot _scaled_mm".split())
# In-place copies write into memory that exists: what they copied is the number of elements written.
WRITING_OPS = frozenset("copy_ index_put_ scatter_ index_copy_".split())
# These take a tensor for its shape or device only: none of its data is in the result.
FACTORY_OPS = frozenset(
    "new_zeros new_ones new_empty new_full new_empty_strided zeros_like ones_like empty_like full_like rand_like "
    "randn_like randint_like empty_strided".split()
)
# Beyond so many events, like ones are added up: a loop over every element may run any number of operations.
MAX_EVENTS = 5000
EXPLICIT_KINDS = frozenset(["explicit_copy", "reshape_copy", "cast", "expansion"])


def code_position(code: CodeType, last: int) -> tuple[int, int, int, int] | None:
    """Line, column, end line, end column of an instruction; columns are byte offsets from 0."""
    for index, position in enumerate(code.co_positions()):
        if index == last // 2:
            line, end_line, column, end_column = position
            if line is None or end_line is None or column is None or end_column is None:
                return None
            return line, column, end_line, end_column
    return None


def place_of(frame: FrameType | None, filename: str) -> tuple[int, int, int, int] | None:
    """The position in `filename` nearest to `frame`, or None."""
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return code_position(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def _name(func: Callable[..., Any]) -> str:
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        # The plain name for the library's own operators; one of the submission's own keeps its namespace.
        packet = func.overloadpacket if isinstance(func, torch._ops.OpOverload) else func
        return packet._qualified_op_name.removeprefix("aten::")
    name = getattr(func, "__name__", "") or str(func)
    # A property arrives as the __get__ of its descriptor; torch.overrides.resolve_name would import half of torch.
    owner = getattr(func, "__self__", None)
    return str(getattr(owner, "__name__", name)) if name == "__get__" else name


_weak: Callable[[Any], Any] = StorageWeakRef


class _Storages:
    """Storages seen so far: which inputs their data comes from, and which are still alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, frozenset[str], int]] = {}
        self._copies: dict[int, int] = {}

    def add(self, tensor: torch.Tensor, labels: frozenset[str]) -> None:
        storage = tensor.untyped_storage()
        self._known[storage._cdata] = (_weak(storage), labels, storage.nbytes())

    def known(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._known

    def labels(self, tensor: torch.Tensor) -> frozenset[str]:
        entry = self._known.get(tensor.untyped_storage()._cdata)
        return entry[1] if entry else frozenset()

    def relabel(self, tensor: torch.Tensor, labels: frozenset[str]) -> None:
        self.add(tensor, self.labels(tensor) | labels)

    def mark_copy(self, tensor: torch.Tensor) -> None:
        """Notes that a storage holds a copy which the code asked for."""
        self._copies[tensor.untyped_storage()._cdata] = _held(tensor)

    def live_copies(self) -> dict[str, int]:
        """Elements of the copies alive, by the inputs (sorted, joined by commas) whose data they hold."""
        self._forget_dead()
        alive: dict[str, int] = {}
        for key, elements in self._copies.items():
            names = ",".join(sorted(self._known[key][1]))
            alive[names] = alive.get(names, 0) + elements
        return alive

    def live_bytes(self, without: set[int]) -> int:
        """Bytes of storages still alive, but for those named."""
        self._forget_dead()
        return self._sum(without)

    def _forget_dead(self) -> None:
        for key in [key for key, entry in self._known.items() if entry[0].expired()]:
            del self._known[key]
            self._copies.pop(key, None)

    def _sum(self, without: set[int]) -> int:
        return sum(entry[2] for key, entry in self._known.items() if key not in without)


class Recorder:
    """Collects the events of one traced call."""

    def __init__(self, filename: str, inputs: dict[str, list[torch.Tensor]]) -> None:
        self.filename = filename
        self.events: list[dict[str, Any]] = []
        self._merged: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.calls: list[tuple[str, tuple[int, int, int, int] | None]] = []
        self.called: dict[str, tuple[int, int, int, int] | None] = {}
        self.peak_bytes = 0
        self.storages = _Storages()
        self._inputs: set[int] = set()
        for name, tensors in inputs.items():
            for tensor in tensors:
                self.storages.relabel(tensor, frozenset([name]))
                self._inputs.add(tensor.untyped_storage()._cdata)

    def record(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Notes one operation after it ran."""
        op = func.__name__.split(".")[0]
        operands = _tensors((args, kwargs))
        results = _tensors(result)
        before = {tensor.untyped_storage()._cdata for tensor in operands}
        fresh = [
            t for t in results if t.untyped_storage()._cdata not in before and not self.storages.known(t)
        ]
        sources = frozenset[str]().union(*(self.storages.labels(t) for t in operands))
        if op in FACTORY_OPS:
            sources = frozenset()
        labelled = sum(bool(self.storages.labels(t)) for t in operands)
        held = max((_held(t) for t in operands if self.storages.labels(t)), default=0)
        for tensor in fresh:
            self.storages.add(tensor, sources)
        new_bytes = sum(t.untyped_storage().nbytes() for t in fresh)
        new_elements = sum(_held(t) for t in fresh)
        copied_from = sources
        if op in WRITING_OPS and operands:
            copied_from = frozenset[str]().union(*(self.storages.labels(t) for t in operands[1:]))
            self.storages.relabel(operands[0], copied_from)
        self.peak_bytes = max(self.peak_bytes, self.storages.live_bytes(without=self._inputs))
        call, place = self.calls[-1] if self.calls else (op, None)
        kind = _kind(op, call, bool(fresh), new_elements, held, sources, labelled == 1)
        if kind == "view" and op not in ("as_strided", *_MOVES):
            return
        if kind in EXPLICIT_KINDS:
            for tensor in operands[:1] if op in WRITING_OPS else fresh:
                if tensor.untyped_storage()._cdata not in self._inputs:
                    self.storages.mark_copy(tensor)
        self._keep(
            {
                "op": f"{func.namespace}.{op}",
                "call": call,
                "kind": kind,
                "place": place or place_of(sys._getframe(), self.filename),
                "new_bytes": new_bytes,
                "new_elements": new_elements,
                "written": operands[0].numel() if op in WRITING_OPS and operands else new_elements,
                "largest": max((t.untyped_storage().nbytes() for t in fresh), default=0),
                "of": sorted(copied_from),
                "alive": self.storages.live_copies() if kind in EXPLICIT_KINDS else {},
            }
        )

    def _keep(self, event: dict[str, Any]) -> None:
        """Adds an event; one of too many adds to an earlier one of its kind, op, call, place and sources."""
        if len(self.events) < MAX_EVENTS:
            self.events.append(event)
            return
        key = (event["op"], event["call"], event["kind"], event["place"], tuple(event["of"]))
        known = self._merged.setdefault(key, event)
        if known is event:
            self.events.append(event)
            return
        for number in ("new_bytes", "new_elements", "written"):
            known[number] += event[number]
        known["largest"] = max(known["largest"], event["largest"])
        if sum(event["alive"].values()) > sum(known["alive"].values()):
            known["alive"] = event["alive"]


_MOVES = frozenset(
    "view _unsafe_view _reshape_alias transpose permute t unsqueeze squeeze expand select slice split "
    "split_with_sizes unbind unfold diagonal movedim swapaxes narrow alias detach as_strided".split()
)


def _kind(
    op: str, call: str, fresh: bool, new_elements: int, held: int, sources: frozenset[str], alone: bool
) -> str:
    """What an operation did. `held`: elements of its largest operand of the inputs' data; `alone`: it has just one."""
    if op in COPY_OPS:
        if op == "_to_copy" and call not in COPY_CALLS:
            return "cast"
        if call in RESHAPE_CALLS:
            return "reshape_copy"
        if call in COPY_CALLS or call == op:
            return "cast" if op == "_to_copy" else "explicit_copy"
        return "internal_copy"
    if op in MATMUL_OPS:
        # A product of one input with a constant that is larger than the input writes the input out again.
        return "expansion" if alone and new_elements > held else "matmul"
    if not fresh:
        return "view" if op in _MOVES else "compute"
    if sources and held and new_elements > held and call not in _PRODUCTS:
        return "expansion"
    return "compute"


_PRODUCTS = frozenset(
    "matmul __matmul__ __rmatmul__ bmm einsum linear tensordot baddbmm inner outer mm".split()
)


def _held(tensor: torch.Tensor) -> int:
    """Elements that a tensor's storage holds."""
    return tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value] if value.layout == torch.strided and not value.is_meta else []
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


class _Calls(TorchFunctionMode):
    """Notes the public function on top of the operations that it runs."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _name(func)
        place = place_of(sys._getframe(1), self._recorder.filename)
        self._recorder.called.setdefault(name, place)
        self._recorder.calls.append((name, place))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._recorder.calls.pop()


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hands every operation to the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keeps torch from importing its compiler (over a second) for a mode that compiles nothing."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._recorder.record(func, args, kwargs or {}, result)
        return result


_STARTERS = [
    (module, name)
    for module in (threading, _thread)
    for name in (
        "_start_new_thread",
        "_start_joinable_thread",
        "start_new_thread",
        "start_joinable_thread",
    )
    if hasattr(module, name)
]
_Watch = Callable[[], AbstractContextManager[None]]
_watching: list[_Watch] = []


@contextmanager
def following() -> Iterator[None]:
    """Inside the block every thread that is started while something is watched is watched too.

    Modes and profilers are per thread. A runner stays in this block for its whole life, so that a submission
    cannot take the starter of threads before it is replaced.
    """
    kept = [(module, name, getattr(module, name)) for module, name in _STARTERS]
    for module, name, start in kept:
        setattr(module, name, _follower(start))
    try:
        yield
    finally:
        for module, name, start in kept:
            setattr(module, name, start)


def _follower(start: Callable[..., Any]) -> Callable[..., Any]:
    """`start`, a function that starts threads, with every thread's function run inside what is watched now."""

    def starting(function: Callable[..., Any], *rest: Any, **options: Any) -> Any:
        watches = list(_watching)

        def watched(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as stack:
                for watch in watches:
                    stack.enter_context(watch())
                return function(*args, **kwargs)

        return start(watched if watches else function, *rest, **options)

    starting.following = True  # type: ignore[attr-defined]
    return starting


@contextmanager
def _followed(watch: _Watch) -> Iterator[None]:
    """Runs `watch()` here and in every thread that is started inside the block."""
    with ExitStack() as stack:
        if not hasattr(getattr(*_STARTERS[0]), "following"):
            stack.enter_context(following())
        _watching.append(watch)
        stack.callback(_watching.remove, watch)
        stack.enter_context(watch())
        yield


def traced(recorder: Recorder) -> AbstractContextManager[None]:
    """Records every operation inside the block, and of threads started in it."""
    return _followed(lambda: _recording(recorder))


@contextmanager
def _recording(recorder: Recorder) -> Iterator[None]:
    with _Calls(recorder), _Operations(recorder):
        yield


# Taken before a submission loads.
_autograd: Any = torch.autograd
_enable_profiler = getattr(_autograd, "_enable_profiler_legacy", None)
_disable_profiler = getattr(_autograd, "_disable_profiler_legacy", None)
_SWITCH = "_enable_record_function"
# Two operators that nobody else has a use for, run first and last: a watch that has not seen both was broken off.
_FIRST, _LAST = torch._C.TensorBase.erfinv, torch._C.TensorBase.digamma
_BETWEEN = frozenset(["aten::erfinv", "aten::digamma"])
UNWATCHED = "unwatched"


def _legacy_config() -> Any:
    autograd: Any = torch.autograd
    experimental = torch._C._profiler._ExperimentalConfig()
    return autograd.ProfilerConfig(
        autograd.ProfilerState.CPU, False, False, False, False, False, experimental
    )


def keep_watching() -> None:
    """In a runner's process: takes away the switch by which a call could hide operators and then show others."""
    for module in (torch._C._autograd, _autograd):
        if hasattr(module, _SWITCH):
            setattr(module, _SWITCH, lambda enabled: None)


def profiled(names: set[str]) -> AbstractContextManager[None]:
    """Adds the name of every operator that runs inside the block, composite library calls included.

    The profiler sits in the library's C++ dispatcher: switching off Python modes does not hide a call from it.
    """
    return _followed(lambda: _profiling(names))


@contextmanager
def _profiling(names: set[str]) -> Iterator[None]:
    if _enable_profiler is None or _disable_profiler is None:
        with _profiling_slowly(names):
            yield
        return
    mark = torch.zeros(1)
    _enable_profiler(_legacy_config())
    _FIRST(mark)
    try:
        yield
    finally:
        try:
            _LAST(mark)
            events = _disable_profiler()
            seen = {e.name() for thread in events for e in thread if e.name().startswith("aten::")}
        except RuntimeError:
            # It was switched off meanwhile: there is none to switch off.
            seen = set()
        names |= seen - _BETWEEN
        if not seen >= _BETWEEN:
            names.add(UNWATCHED)


@contextmanager
def _profiling_slowly(names: set[str]) -> Iterator[None]:
    """For a library that has dropped the older interface: the same names, at the price of its slower one."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        yield
    names.update(e.name for e in profile.events() or [] if e.name.startswith("aten::"))
