"""Loads a submission, calls it trial by trial and reports facts and bytes. No judgement.

Every attribute of a result is read through methods captured before the submission loads, so that an
attribute set on a tensor shadows nothing. What a request may hold is described in docs/architecture.md.
"""

from __future__ import annotations

import _thread
import builtins
import hashlib
import inspect
import io
import linecache
import sys
import tokenize
import traceback
import types
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from . import trace

_T = torch._C.TensorBase
_stride, _offset, _storage = _T.stride, _T.storage_offset, torch.Tensor.untyped_storage
_size, _numel, _element_size = _T.size, _T.numel, _T.element_size
_detach, _is_neg, _is_conj = _T.detach, _T.is_neg, _T.is_conj
_dtype_of, _device_of, _layout_of = (getattr(_T, name).__get__ for name in ("dtype", "device", "layout"))
_wants_grad, _version_of = _T.requires_grad.__get__, _T._version.__get__  # type: ignore[attr-defined]
_view, _copy = _T.view, _T.copy_
_Parameter = torch.nn.Parameter
_Recorder, _profiled, _traced = trace.Recorder, trace.profiled, trace.traced
_count_threads, _set_profile, _set_trace = _thread._count, sys.setprofile, sys.settrace
_bases_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_BUILT_IN = {id(value) for value in vars(builtins).values() if isinstance(value, type)}
_grad, _frombuffer, _empty = torch.autograd.grad, torch.frombuffer, torch.empty

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.uint8,
        torch.int8, torch.int16, torch.int32, torch.int64,
    )
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_DEPTH = 6
MAX_ITEMS = 512


class LoadFailure(Exception):
    """The submission cannot be loaded; `facts` says why."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(facts.get("code"))
        self.facts = facts


@dataclass
class Submission:
    """A loaded submission."""

    filename: str
    namespace: dict[str, Any]
    kept: list[list[torch.Tensor]] = field(default_factory=list)
    threads: int = field(default_factory=_thread._count)
    """How many ran after the last call. A new one counts itself only a moment after it was started."""
    parameters: dict[types.FunctionType, list[inspect.Parameter]] = field(default_factory=dict)
    """What the functions called so far take: looking it up costs as much as a small call."""


def load(
    source: bytes, filename: str, entries: Sequence[str], *, module_name: str = "submission"
) -> Submission:
    """Runs the submission's module and checks that it has the entries. Raises LoadFailure."""
    text = decode_source(source)
    try:
        code = compile(text, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise LoadFailure(code="syntax", line=error.lineno, column=error.offset, message=error.msg) from None
    except (RecursionError, MemoryError):
        raise LoadFailure(
            code="unreadable", message="its expressions are nested too deeply", type=""
        ) from None
    except (ValueError, OverflowError) as error:
        raise LoadFailure(code="unreadable", message=str(error), type=type(error).__name__) from None
    module = types.ModuleType(module_name)
    module.__file__ = filename
    sys.modules[module_name] = module
    _remember_source(text, filename)
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        raise LoadFailure(code="raised", **describe_error(error, filename)) from None
    _raise_recompile_limits()
    _check_entries(module.__dict__, entries)
    return Submission(filename, module.__dict__)


def decode_source(source: bytes) -> str:
    """The text of a source file as Python reads it: UTF-8 unless its first lines name another encoding.

    Raises LoadFailure.
    """
    nul = source.find(0)
    if nul >= 0:
        raise LoadFailure(
            code="syntax",
            line=_line_of(source, nul),
            column=None,
            message="source code cannot contain null bytes",
        )
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            raise LoadFailure(code="syntax", line=1, column=None, message=error.msg) from None
        encoding = "utf-8"
    try:
        return source.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line_of(source, error.start)
        raise LoadFailure(code="syntax", line=line, column=None, message=f"(unicode error) {error}") from None
    except LookupError as error:
        raise LoadFailure(code="syntax", line=1, column=None, message=str(error)) from None


def _line_of(source: bytes, position: int) -> int:
    return source.count(b"\n", 0, position) + 1


def _raise_recompile_limits() -> None:
    """Many shapes in one process are the grader's doing: compiled code must not be failed for compiling often."""
    config = sys.modules.get("torch._dynamo.config")
    for name in (
        "recompile_limit",
        "accumulated_recompile_limit",
        "cache_size_limit",
        "accumulated_cache_size_limit",
    ):
        if config is not None and hasattr(config, name):
            setattr(config, name, 4096)


def _remember_source(text: str, filename: str) -> None:
    lines = [line + "\n" for line in source_lines(text)]
    linecache.cache[filename] = (len(text), None, lines, filename)


def source_lines(text: str) -> list[str]:
    """The lines of a source as Python counts them: a form feed or a line separator in a string ends none."""
    return io.StringIO(text, newline=None).read().split("\n")


def _check_entries(namespace: dict[str, Any], entries: Sequence[str]) -> None:
    for entry in entries:
        if entry not in namespace:
            names = [n for n, v in namespace.items() if callable(v) and not n.startswith("_")]
            raise LoadFailure(code="missing_entry", entry=entry, names=names[:50])
        if not callable(namespace[entry]):
            raise LoadFailure(code="not_callable", entry=entry, type=type(namespace[entry]).__name__)


def describe_error(error: BaseException, filename: str) -> dict[str, Any]:
    """An exception as plain data: its type, bases, message and the submission's own frames."""
    frames = [
        {
            "line": f.lineno,
            "end_line": f.end_lineno,
            "column": f.colno,
            "end_column": f.end_colno,
            "name": f.name,
        }
        for f in traceback.extract_tb(error.__traceback__, limit=200)
        if f.filename == filename
    ]
    return {
        "type": type(error).__name__,
        # The built-in classes themselves: a class may be named like one, or say that it derives from one.
        "bases": [base.__name__ for base in _bases_of(type(error)) if id(base) in _BUILT_IN],
        "message": _message(error, filename),
        "frames": frames[:3] + frames[-7:] if len(frames) > 10 else frames,
    }


def _message(error: BaseException, filename: str) -> str:
    try:
        # A string of a class of its own may say anything of itself; the built-in's methods do not ask it.
        text = str.__getitem__(str(error), slice(4000))
    except BaseException:
        return "(its message cannot be read)"
    # A file is spoken of by its name: the folder it was put in means nothing to its author.
    folder = filename[: filename.rfind("/") + 1]
    plain = text.encode("utf-8", "replace").decode()
    return plain.replace(folder, "") if len(folder) > 1 else plain


@dataclass
class _Trial:
    """The state of one call."""

    submission: Submission
    request: dict[str, Any]
    device: str
    buffers: list[torch.Tensor]
    values: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    storages: list[torch.UntypedStorage] = field(default_factory=list)
    observed: list[Any] = field(default_factory=list)
    module: Any = None
    out: list[bytearray] = field(default_factory=list)


def perform(
    submission: Submission, request: dict[str, Any], raw: Sequence[bytes | bytearray]
) -> tuple[dict[str, Any], list[bytearray]]:
    """One trial: makes the inputs, runs the steps, reports what came of it."""
    device = request.get("device", "cpu")
    buffers = [_buffer(spec, data, device) for spec, data in zip(request["buffers"], raw, strict=False)]
    trial = _Trial(submission, request, device, buffers)
    trial.storages = [_storage(buffer) for buffer in buffers]
    ranges = [(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in trial.storages]
    threads = _count_threads()
    for name, spec in request["args"].items():
        trial.values[name] = _materialise(spec, name, trial)
    versions = [_version_of(buffer) for buffer in buffers]
    axes = _axes(trial)
    reply: dict[str, Any] = {"outcome": "returned"}
    names: set[str] = set()
    recorder = _Recorder(submission.filename, trial.tensors) if request.get("trace") else None
    try:
        with ExitStack() as stack:
            if request.get("profile"):
                stack.enter_context(_profiled(names))
            if recorder is not None:
                stack.enter_context(_traced(recorder))
            for step in request["steps"]:
                _run_step(step, trial)
        reply["results"] = _describe_all(trial, ranges)
    except BaseException as error:
        reply = {"outcome": "raised", "error": describe_error(error, submission.filename)}
    # Whatever watches this frame for the submission stops here.
    _set_profile(None)
    _set_trace(None)
    now = _count_threads()
    reply["threads"] = now - min(threads, submission.threads)
    submission.threads = now
    reply["versions"] = [[before, _version_of(b)] for before, b in zip(versions, buffers, strict=True)]
    reply["relabelled"] = [name for name, before in axes.items() if _axes(trial)[name] != before]
    reply["operators"] = sorted(names)
    if recorder is not None:
        reply["events"] = recorder.events
        reply["called"] = recorder.called
        reply["peak_bytes"] = recorder.peak_bytes
    if reply["outcome"] == "returned" and "gradient" in request:
        with _profiled(names) if request.get("profile") else nullcontext():
            reply["gradient"] = _gradient(trial)
        reply["operators"] = sorted(names)
    reply["inputs"] = [_send_bytes(buffer, trial) for buffer in buffers]
    return reply, trial.out


def _axes(trial: _Trial) -> dict[str, list[tuple[Any, ...]]]:
    """How each input tensor's own axes lie: `transpose_` and its like change these without writing a number."""
    return {
        name: [(tuple(_size(t)), tuple(_stride(t)), _offset(t)) for t in tensors]
        for name, tensors in trial.tensors.items()
    }


def _buffer(spec: dict[str, Any], data: bytes | bytearray, device: str) -> torch.Tensor:
    dtype = DTYPES[spec["dtype"]]
    if not data:
        return _empty(0, dtype=dtype, device=device)
    buffer = _empty(spec["numel"], dtype=dtype)
    buffer.copy_(_frombuffer(bytearray(data), dtype=dtype))
    return buffer.to(device)


def _materialise(spec: dict[str, Any], name: str, trial: _Trial) -> Any:
    kind = spec["k"]
    if kind == "v":
        return spec["v"]
    if kind == "l":
        return [_materialise(item, name, trial) for item in spec["i"]]
    if kind == "d":
        return {key: _materialise(item, name, trial) for key, item in spec["i"].items()}
    if kind == "mha":
        return _library_module(spec, name, trial)
    # detach() of the view shares the buffer's version counter, so a later in-place edit is seen on both.
    tensor = trial.buffers[spec["b"]].as_strided(spec["s"], spec["st"], spec["o"]).detach()
    if spec.get("g"):
        tensor.requires_grad_()
    trial.tensors.setdefault(name, []).append(tensor)
    return tensor


def _library_module(spec: dict[str, Any], name: str, trial: _Trial) -> torch.nn.Module:
    state = {key: _materialise(item, name, trial) for key, item in spec["state"].items()}
    dtype = next(iter(state.values())).dtype
    module = torch.nn.MultiheadAttention(**spec["config"]).to(device=trial.device, dtype=dtype)
    module.load_state_dict(state)
    return module


def _run_step(step: dict[str, Any], trial: _Trial) -> None:
    action: Callable[[dict[str, Any], _Trial], Any] = _ACTIONS[step["do"]]
    result = action(step, trial)
    if step.get("save"):
        trial.values[step["save"]] = result
    if step.get("observe"):
        trial.observed.append(result)


def _call(step: dict[str, Any], trial: _Trial) -> Any:
    return _apply(trial.submission.namespace[step["name"]], step, trial)


def _new(step: dict[str, Any], trial: _Trial) -> Any:
    trial.module = _call(step, trial)
    return trial.module


def _method(step: dict[str, Any], trial: _Trial) -> Any:
    target = _target(step, trial)
    # A module is called as its users call it, through __call__.
    function = (
        target
        if step["name"] in ("forward", "__call__") and callable(target)
        else getattr(target, step["name"])
    )
    return _apply(function, step, trial)


def _target(step: dict[str, Any], trial: _Trial) -> Any:
    return trial.values[step["on"]] if step.get("on") else trial.module


def _to(step: dict[str, Any], trial: _Trial) -> Any:
    target = _target(step, trial)
    if isinstance(target, torch.nn.Module):
        target.to(dtype=DTYPES[trial.request["dtype"]], device=trial.device)


def _mode(step: dict[str, Any], trial: _Trial) -> Any:
    target = _target(step, trial)
    if isinstance(target, torch.nn.Module):
        target.train(step["do"] == "train")


def _scrub(step: dict[str, Any], trial: _Trial) -> Any:
    """Overwrites what was handed over, so that code which kept it instead of copying it shows."""
    with torch.no_grad():
        for name in step["args"]:
            value = trial.values[name]
            tensors = list(value.parameters()) if isinstance(value, torch.nn.Module) else trial.tensors[name]
            for tensor in tensors:
                tensor.fill_(7)


def _parameters(step: dict[str, Any], trial: _Trial) -> int:
    target = _target(step, trial)
    return sum(p.numel() for p in target.parameters()) if isinstance(target, torch.nn.Module) else -1


_ACTIONS: dict[str, Callable[[dict[str, Any], _Trial], Any]] = {
    "call": _call,
    "new": _new,
    "method": _method,
    "to": _to,
    "eval": _mode,
    "train": _mode,
    "scrub": _scrub,
    "parameters": _parameters,
}


def _apply(function: Any, step: dict[str, Any], trial: _Trial) -> Any:
    names = step.get("names") or step["args"]
    values = [trial.values[name] for name in step["args"]]
    positional, keywords = bind(parameters_of(function, trial.submission.parameters), names, values)
    try:
        return function(*positional, **keywords)
    except TypeError as error:
        if any(code.co_filename == trial.submission.filename for code in _codes(error)):
            raise
        unfit = _unfit(function, positional, keywords)
        if unfit is None:
            raise
        label = step.get("name") or getattr(function, "__name__", "it")
        raise TypeError(f"`{label}{unfit}` cannot be called as `{label}({', '.join(names)})`") from None


def _codes(error: BaseException) -> list[types.CodeType]:
    """The code of every frame that an exception passed through."""
    return [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]


def _unfit(function: Any, positional: Sequence[Any], keywords: dict[str, Any]) -> str | None:
    """The function's parameters, if they do not take these arguments."""
    try:
        signature = inspect.signature(_called(function))
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*positional, **keywords)
    except TypeError:
        bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
        return str(inspect.Signature(bare))
    return None


def _called(function: Any) -> Any:
    """What says which arguments a callable takes: a module hands all to its `forward`."""
    return function.forward if isinstance(function, torch.nn.Module) else function


def parameters_of(
    function: Any, known: dict[types.FunctionType, list[inspect.Parameter]]
) -> list[inspect.Parameter] | None:
    """The parameters of a callable, or None when it does not say. Plain functions are kept in `known`."""
    plain = type(function) is types.FunctionType
    if plain and function in known:
        return known[function]
    try:
        parameters = list(inspect.signature(_called(function)).parameters.values())
    except (TypeError, ValueError):
        return None
    if plain:
        known[function] = parameters
    return parameters


def bind(
    parameters: Sequence[inspect.Parameter] | None, names: Sequence[str], values: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Passes values by position, but by name where the function has that name elsewhere or as a keyword only.

    So renamed parameters fit, and so do further ones (`mask=None`) put between the documented ones.
    """
    if parameters is None:
        return list(values), {}
    slots = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    only_by_name = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    more_slots = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    more_names = any(p.kind is p.VAR_KEYWORD for p in parameters)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        here = slots[len(positional)] if len(positional) < len(slots) else None
        full = here is None and not more_slots and more_names
        if name in only_by_name or (name in by_name and name != here and not more_slots) or full:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


def _describe_all(trial: _Trial, ranges: list[tuple[int, int]]) -> list[dict[str, Any]]:
    kept: list[torch.Tensor] = []
    trial.submission.kept.append(kept)
    groups: dict[int, int] = {}
    return [_describe(value, trial, ranges, groups, kept, 0) for value in trial.observed]


def _describe(
    value: Any,
    trial: _Trial,
    ranges: list[tuple[int, int]],
    groups: dict[int, int],
    kept: list[torch.Tensor],
    depth: int,
) -> dict[str, Any]:
    kind = type(value)
    if kind in (bool, int, float, str) or value is None:
        return _describe_scalar(value)
    if kind is torch.Tensor or kind is _Parameter:
        return _describe_tensor(value, trial, ranges, groups, kept)
    if depth < MAX_DEPTH and isinstance(value, (tuple, list)) and len(value) <= MAX_ITEMS:
        # The built-in's own iterator: a class derived from it may have another.
        members = tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)
        items = [_describe(v, trial, ranges, groups, kept, depth + 1) for v in members]
        return {"k": "l", "type": kind.__name__, "tuple": isinstance(value, tuple), "i": items}
    if depth < MAX_DEPTH and kind is dict and len(value) <= MAX_ITEMS:
        named = {str(k): _describe(v, trial, ranges, groups, kept, depth + 1) for k, v in value.items()}
        return {"k": "d", "i": named}
    return {"k": "f", "type": f"{kind.__module__}.{kind.__qualname__}"[:200]}


def _describe_scalar(value: Any) -> dict[str, Any]:
    if type(value) is int and value.bit_length() > 4096:
        return {"k": "f", "type": "int of more than 4096 bits"}
    return {"k": "v", "type": type(value).__name__, "v": str(value) if type(value) is int else value}


def _describe_tensor(
    value: torch.Tensor,
    trial: _Trial,
    ranges: list[tuple[int, int]],
    groups: dict[int, int],
    kept: list[torch.Tensor],
) -> dict[str, Any]:
    dtype, device, layout = _dtype_of(value), _device_of(value).type, _layout_of(value)
    facts: dict[str, Any] = {
        "k": "t",
        "dtype": _NAMES.get(dtype, str(dtype).removeprefix("torch.")),
        "device": device,
        "shape": list(_size(value)),
        "layout": str(layout).removeprefix("torch."),
        "parameter": type(value) is _Parameter,
        "requires_grad": bool(_wants_grad(value)),
    }
    if layout is not torch.strided or device == "meta" or dtype not in _NAMES:
        return facts
    storage = _storage(value)
    facts.update(stride=list(_stride(value)), neg=bool(_is_neg(value)), conj=bool(_is_conj(value)))
    facts["buffer"], facts["offset"] = _home(value, storage, ranges)
    facts["storage"] = groups.setdefault(storage.data_ptr(), len(groups)) if storage.nbytes() else -1
    if _numel(value) * _element_size(value) > trial.request["max_bytes"]:
        facts["too_large"] = True
        return facts
    kept.append(value)
    facts["data"] = _send_bytes(value, trial)
    return facts


def _home(
    value: torch.Tensor, storage: torch.UntypedStorage, ranges: list[tuple[int, int]]
) -> tuple[int | None, int]:
    """Which input buffer the tensor lies in, by address, and its offset in elements from the buffer's start."""
    if storage.nbytes() == 0:
        return None, 0
    address = storage.data_ptr() + _offset(value) * _element_size(value)
    for index, (start, end) in enumerate(ranges):
        if start <= address < end:
            return index, (address - start) // _element_size(value)
    return None, int(_offset(value))


def to_bytes(value: torch.Tensor) -> bytearray:
    """The elements of a tensor in row-major order."""
    size = _numel(value) * _element_size(value)
    data = bytearray(size)
    if size:
        _copy(_view(_frombuffer(data, dtype=_dtype_of(value)), _size(value)), _detach(value))
    return data


def _send_bytes(value: torch.Tensor, trial: _Trial) -> int:
    trial.out.append(to_bytes(value))
    return len(trial.out) - 1


def _leaves(value: Any, depth: int = 0) -> list[Any]:
    """The tensors of a result in the order, and to the depth, in which they are described."""
    if type(value) in (torch.Tensor, _Parameter):
        return [value]
    if depth >= MAX_DEPTH or not isinstance(value, (tuple, list, dict)) or len(value) > MAX_ITEMS:
        return []
    items = list(value.values()) if type(value) is dict else [] if isinstance(value, dict) else list(value)
    return [leaf for item in items for leaf in _leaves(item, depth + 1)]


def _gradient(trial: _Trial) -> dict[str, Any]:
    spec = trial.request["gradient"]
    outputs = [leaf for value in trial.observed for leaf in _leaves(value)]
    wanted = [tensor for name in spec["of"] for tensor in trial.tensors[name]]
    has_parameters = spec.get("parameters") and isinstance(trial.module, torch.nn.Module)
    parameters = list(trial.module.parameters()) if has_parameters else []
    pairs = [
        (output, trial.buffers[index].view(shape))
        for output, (index, shape) in zip(outputs, spec["cotangents"], strict=False)
        if index is not None and output.requires_grad and list(_size(output)) == shape
    ]
    try:
        grads = _differentiate(pairs, [*wanted, *parameters])
    except BaseException as error:
        return {"error": describe_error(error, trial.submission.filename)}
    sent = [None if g is None else _describe_gradient(g, trial) for g in grads[: len(wanted)]]
    finite = [None if g is None else bool(torch.isfinite(g).all()) for g in grads[len(wanted) :]]
    return {"inputs": sent, "parameters": finite}


def _differentiate(
    pairs: list[tuple[torch.Tensor, torch.Tensor]], wanted: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    wants = [tensor.requires_grad for tensor in wanted]
    asked = [tensor for tensor in wanted if tensor.requires_grad]
    if not pairs or not asked:
        return [None] * len(wanted)
    # The gradient of sum(output * cotangent): exactly the cotangent reaches each output. Handing cotangents to
    # autograd.grad itself would make torch import its symbolic shapes, which takes a second in every runner.
    total = sum((output * cotangent.to(output.dtype)).sum() for output, cotangent in pairs)
    assert isinstance(total, torch.Tensor)
    found = iter(_grad(total, asked, allow_unused=True))
    return [next(found) if want else None for want in wants]


def _describe_gradient(gradient: torch.Tensor, trial: _Trial) -> dict[str, Any]:
    dtype = _NAMES.get(gradient.dtype)
    if gradient.layout is not torch.strided or dtype is None:
        return {"dtype": str(gradient.dtype), "data": None}
    return {"dtype": dtype, "shape": list(_size(gradient)), "data": _send_bytes(gradient, trial)}


def second_look(submission: Submission) -> list[list[str]]:
    """A digest of every result as it is now, trial by trial: late edits show."""
    return [
        [hashlib.blake2b(to_bytes(t), digest_size=16).hexdigest() for t in kept] for kept in submission.kept
    ]
