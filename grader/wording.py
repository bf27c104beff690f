"""Findings as sentences: one function per finding code. The only place where checks get words.

`message` says what is wrong, `why` the likely cause or the idea behind, `expected` and `actual` the two facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.report import Finding


@dataclass(frozen=True)
class Sentence:
    """A finding in words."""

    message: str
    why: str = ""
    expected: str | None = None
    actual: str | None = None


Words = Callable[[Mapping[str, Any]], Sentence]
_WORDS: dict[tuple[str, str], Words] = {}


def words_for(check: str, *codes: str) -> Callable[[Words], Words]:
    """Registers the words of one or more finding codes of a check."""

    def register(function: Words) -> Words:
        for code in codes:
            _WORDS[check, code] = function
        return function

    return register


def sentence(finding: Finding) -> Sentence:
    """The words of a finding; KeyError for a code without words (a test holds that there is none)."""
    return _WORDS[finding.check, finding.code]({**finding.data, "code": finding.code})


def codes() -> frozenset[tuple[str, str]]:
    """Every (check, code) that has words."""
    return frozenset(_WORDS)


def _result(data: Mapping[str, Any]) -> str:
    number = int(data.get("result", 0))
    return f"result {number + 1}" if number or data.get("results", 1) > 1 else "the result"


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.4g} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.4g} MiB"


def _place(data: Mapping[str, Any]) -> str:
    index = data.get("index") or []
    which = f"[{data['result']}]" if data.get("results", 1) > 1 else ""
    return f"out{which}[{', '.join(map(str, index))}]" if index else _result(data)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@words_for("returns", "raised")
def _raised(data: Mapping[str, Any]) -> Sentence:
    text = str(data["text"])
    if data["type"] == "TypeError" and "argument" in text:
        why = "If the call itself does not fit, compare your parameters with the signature in `mhaquiz show`."
    elif data["type"] == "NotImplementedError":
        why = "Part of the starter is still to be written."
    else:
        why = ""
    return Sentence(
        f"your code raised {data['type']}: {text}" if text else f"your code raised {data['type']}", why
    )


@words_for("returns", "time_limit", "memory_limit", "process_limit", "output_limit", "killed", "refused")
def _stopped(data: Mapping[str, Any]) -> Sentence:
    text = {
        "time_limit": (
            "the run was stopped at the time limit",
            "Look for a loop that never ends. For code that is compiled first, `--seconds 120` allows more.",
        ),
        "memory_limit": (
            "the run was stopped at the memory limit",
            "Look for a tensor far larger than the inputs.",
        ),
        "process_limit": (
            "the run was stopped at the process limit",
            "A solution needs no processes of its own.",
        ),
        "output_limit": ("the run was stopped at the output limit", "Remove the prints from the loop."),
        "killed": (
            "the run ended before your code returned",
            "It crashed the interpreter or ended the process.",
        ),
        "refused": ("the run's answers could not be read", "Your code wrote to the grader's own channel."),
    }[str(data["code"])]
    detail = f": {data['detail']}" if data.get("detail") else ""
    return Sentence(text[0] + detail, text[1])


@words_for("returns", "type")
def _type(data: Mapping[str, Any]) -> Sentence:
    why = "Did you forget the return statement?" if data["actual"] == "None" else ""
    if "numpy" in str(data["actual"]):
        why = "Stay in torch: gradients and devices end where numpy begins."
    return Sentence(
        f"your code returned {data['actual']}, expected {data['expected']}",
        why,
        data["expected"],
        data["actual"],
    )


@words_for("returns", "stacked")
def _stacked(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"your code returned {data['actual']}, expected {data['expected']}",
        "Return the results side by side (`return a, b, c`), not stacked into one tensor: stacking copies them.",
        data["expected"],
        data["actual"],
    )


@words_for("returns", "flagged", "unreadable")
def _odd(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"your code returned {data['actual']}, expected {data['expected']}",
        "Return an ordinary torch.Tensor with its own elements.",
        data["expected"],
        data["actual"],
    )


@words_for("shape", "shape")
def _shape(data: Mapping[str, Any]) -> Sentence:
    expected, actual = tuple(data["expected"]), tuple(data["actual"])
    axes = f" ({', '.join(data['axes'])})" if data["axes"] else ""
    why = ""
    if sorted(expected) == sorted(actual):
        why = "The sizes are right, the order of the axes is not."
    elif len(expected) != len(actual):
        why = f"The result has {len(actual)} axes, not {len(expected)}."
    return Sentence(
        f"{_result(data)} has shape {actual}, expected {expected}{axes}", why, str(expected), str(actual)
    )


@words_for("dtype", "dtype")
def _dtype(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{_result(data)} is {data['actual']}, expected {data['expected']}",
        "Whatever precision is used inside, the result goes back to the input's dtype.",
        data["expected"],
        data["actual"],
    )


@words_for("device", "device")
def _device(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{_result(data)} is on {data['actual']}, the inputs are on {data['expected']}",
        "Create helper tensors with device=x.device.",
        data["expected"],
        data["actual"],
    )


@words_for("finite", "nan", "infinite")
def _finite(data: Mapping[str, Any]) -> Sentence:
    what = "NaN" if data["code"] == "nan" else "infinite"
    share = f"{data['count']} of {data['total']} elements are {what} in {data['dtype']}"
    why = {
        "nan": "NaN comes from inf - inf, 0 * inf, 0 / 0 or a softmax over nothing but -inf.",
        "infinite": "Something overflowed: an exponential of a large number, or a 16-bit product.",
    }[str(data["code"])]
    return Sentence(
        f"{share}; the first is {_place(data)}, expected {_number(data['expected'])}",
        why,
        _number(data["expected"]),
        str(data["actual"]),
    )


@words_for("values", "value")
def _value(data: Mapping[str, Any]) -> Sentence:
    share = f"{data['wrong']} of {data['total']} elements are wrong"
    worst = f"{_place(data)} is {_number(data['actual'])}, expected {_number(data['expected'])}"
    return Sentence(f"{share}; {worst}", _how_far(data), _number(data["expected"]), _number(data["actual"]))


def _how_far(data: Mapping[str, Any]) -> str:
    if data["phase"] == "exact":
        return "This value is exact in every precision, so nothing may differ."
    if data["phase"] == "logic":
        return "In double precision, so rounding is no excuse."
    honest = data.get("honest")
    how = (
        f"{honest:.3g} x what an honest {data['dtype']} version makes"
        if honest
        else "far more than rounding makes"
    )
    return f"Only the precision is at fault: the error is {how}."


@words_for("values", "nonfinite")
def _nonfinite(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['wrong']} of {data['total']} elements are infinite or NaN in the wrong place; "
        f"{_place(data)} is {_number(data['actual'])}, expected {_number(data['expected'])}",
        "Where a mask belongs, -inf must stand exactly there and nowhere else.",
        _number(data["expected"]),
        _number(data["actual"]),
    )


@words_for("values", "number")
def _wrong_number(data: Mapping[str, Any]) -> Sentence:
    what = data.get("what") or _result(data)
    if data.get("what") and data["actual"] == "-1":
        # The harness counts -1 parameters of an object that has none to count.
        return Sentence(
            "what was built is no torch.nn.Module",
            "Derive the class from torch.nn.Module and call super().__init__() first.",
            "a torch.nn.Module",
            "another class",
        )
    return Sentence(
        f"{what} is {data['actual']}, expected {data['expected']}",
        "",
        data["expected"],
        data["actual"],
    )


@words_for("strides", "strides")
def _strides(data: Mapping[str, Any]) -> Sentence:
    expected, actual = tuple(data["expected"]), tuple(data["actual"])
    pairs = zip(data["axes"], expected, actual, data["shape"], strict=False)
    differing = [axis for axis, e, a, n in pairs if e != a and n > 1]
    axes = f" (differs on {', '.join(differing)})" if differing else ""
    return Sentence(
        f"{_result(data)} has strides {actual}, expected {expected}{axes}",
        "A stride says how many elements lie between neighbours along an axis. Right shape, other walk.",
        str(expected),
        str(actual),
    )


@words_for("no_copy", "copied")
def _copied(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{_result(data)} does not share memory with {data['of']}",
        f"It lies in new memory of {_size(int(data['new_bytes']))}. This stage only re-labels memory; nothing moves.",
        f"a view of {data['of']}",
        f"new storage, {_size(int(data['new_bytes']))}",
    )


@words_for("no_copy", "false_claim")
def _false_claim(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{_result(data)} lies in the memory of {data['of']}, but does not hold what that memory held",
        "The input was changed, or the view was tampered with.",
        f"a view of {data['of']}",
        "other contents",
    )


@words_for("single_storage", "several")
def _several(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"the results lie in {data['actual']} storages, expected 1",
        "One product gives all of them; cutting it up is a view.",
        "1 storage",
        f"{data['actual']} storages",
    )


@words_for("contiguous", "not_contiguous")
def _not_contiguous(data: Mapping[str, Any]) -> Sentence:
    expected, actual = tuple(data["expected"]), tuple(data["actual"])
    return Sentence(
        f"{_result(data)} was copied and is still not contiguous: strides {actual}, expected {expected}",
        "If a copy is made at all, make it in the order in which it is read.",
        str(expected),
        str(actual),
    )


@words_for("allocation", "explicit", "held", "new", "largest", "peak")
def _allocated(data: Mapping[str, Any]) -> Sentence:
    itemsize = int(data["itemsize"])
    what = {
        "explicit": "your code copies",
        "held": "your code holds copies of",
        "new": "your code takes new memory for",
        "largest": "the largest single tensor has",
        "peak": "at its peak your code holds",
    }[str(data["code"])]
    of = f" of {' and '.join(data['of'])}" if data.get("of") else ""
    call = f"; most of it in `{data['call']}`" if data.get("call") else ""
    used, allowed = int(data["used"]), int(data["allowed"])
    return Sentence(
        f"{what} {used} elements{of}, allowed {allowed} ({data['budget']}){call}",
        "Only copies that your code asks for count; what matmul copies inside does not."
        if data["code"] in ("explicit", "held")
        else "Everything that the call allocates counts, whichever operation does it.",
        f"at most {_size(allowed * itemsize)}",
        _size(used * itemsize),
    )


@words_for("allocation", "untraceable")
def _untraceable(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        "your code cannot be traced, and it copies: " + ", ".join(data["operators"]),
        "Write the stage without compiling or scripting it, so that its copies can be shown.",
    )


@words_for("forbidden", "library_call")
def _library_call(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"`{data['call']}` does the exercise for you",
        "This stage is to be written from primitives; the library's own version is refused, wherever it is called.",
        "primitives",
        f"{data['call']}",
    )


@words_for("forbidden", "unwatched")
def _unwatched(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        "the grader's watch over your call was switched off while it ran",
        "This stage refuses library calls, so every call is watched. Leave the library's profiler alone.",
    )


@words_for("required", "other_move")
def _other_move(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"`{data['call']}` moves or re-views data; here only {data['expected']} may",
        "The point is to write the strides down yourself.",
        str(data["expected"]),
        str(data["call"]),
    )


@words_for("required", "unused")
def _unused(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['expected']} was never called", "The stage asks for it by name.", str(data["expected"])
    )


@words_for("required", "products")
def _products(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['actual']} matrix products ran, expected at most {data['expected']}",
        "Fusing means that one product serves all of them.",
        str(data["expected"]),
        str(data["actual"]),
    )


@words_for("mutation", "changed")
def _changed(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['of']} was changed by the call",
        "The caller still owns its tensor. Look for an operation that ends in an underscore, `+=`, or an assignment "
        "into a view.",
        f"{data['of']} as it was",
        f"{data['of']} with other values",
    )


@words_for("mutation", "relabelled")
def _relabelled(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"the axes of {data['of']} were changed in place",
        "A method that ends in an underscore (`transpose_`, `unsqueeze_`, `resize_`) changes the caller's own tensor: "
        "leave the underscore out.",
        f"{data['of']} with the axes that it had",
        "other axes",
    )


@words_for("mutation", "changed_back")
def _changed_back(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['of']} was written to during the call, even if its values are the same again",
        "Anything else that reads the tensor meanwhile, autograd included, sees the edit.",
        f"{data['of']} untouched",
        "written in place",
    )


@words_for("determinism", "differs")
def _differs(data: Mapping[str, Any]) -> Sentence:
    where = (
        f": {_place(data)} was {_number(data['first'])}, then {_number(data['second'])}"
        if "first" in data
        else ""
    )
    return Sentence(
        f"two calls with the same inputs gave different results{where}",
        "Look for dropout, random numbers, or state kept from one call to the next.",
    )


@words_for("determinism", "changed_later")
def _changed_later(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        "a result changed after it had been returned",
        "A buffer shared between calls, or work that goes on in the background, overwrites it.",
    )


@words_for("determinism", "threads")
def _threads(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['actual']} {'thread was' if data['actual'] == 1 else 'threads were'} still running after the call "
        "returned",
        "Join every thread before returning; a result must be complete.",
    )


@words_for("causality", "future_seen")
def _future_seen(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"position {data['position']} changed when only positions from {data['changed_from']} on were changed",
        "A query may see itself and what came before it. Look at the mask's direction and its alignment.",
        _number(data["before"]),
        _number(data["after"]),
    )


@words_for("gradient", "raised")
def _gradient_raised(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"with gradients required, your code raised {data['type']}: {data['text']}",
        "Without them it ran. In-place edits of inputs and of saved results are the usual cause.",
    )


@words_for("gradient", "backward_raised")
def _backward_raised(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"backward raised {data['type']}: {data['text']}",
        "A tensor that backward needs was edited in place, or the graph was cut.",
    )


@words_for("gradient", "missing")
def _gradient_missing(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"no gradient reaches {data['of']}",
        "`detach`, `.data`, `no_grad`, `item` or numpy cut the graph.",
        f"a gradient for {data['of']}",
        "none",
    )


@words_for("gradient", "wrong")
def _gradient_wrong(data: Mapping[str, Any]) -> Sentence:
    low = f" in {data['dtype']}" if data["phase"] == "hygiene" else ""
    return Sentence(
        f"the gradient of {data['of']} is wrong{low}: at {list(data['index'])} it is {_number(data['actual'])}, "
        f"expected {_number(data['expected'])}",
        "The values are right, so part of the computation is cut off from autograd or rounded on the way back.",
        _number(data["expected"]),
        _number(data["actual"]),
    )


@words_for("gradient", "parameter_missing")
def _parameter_missing(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['count']} of {data['total']} parameters get no gradient",
        "Weights must be registered as parameters of the module and be used in forward.",
        "a gradient for every parameter",
        f"{data['count']} without",
    )


@words_for("gradient", "parameter_not_finite")
def _parameter_not_finite(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['count']} of {data['total']} parameters get a NaN or infinite gradient",
        "Fully masked rows and overflowing exponentials are the usual cause.",
        "finite gradients",
        f"{data['count']} not finite",
    )


@words_for("raises", "not_raised")
def _not_raised(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"bad input was accepted ({data['case']}); expected {data['expected']}",
        "The statement promises the exception: a caller must learn of bad sizes where they arise.",
        str(data["expected"]),
        "it returned",
    )


@words_for("raises", "returned_instead")
def _returned_instead(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"bad input gave {data['actual']} ({data['case']}); expected {data['expected']} to be raised",
        f"An exception is raised, not returned: `raise {data['expected']}(...)`.",
        str(data["expected"]),
        str(data["actual"]),
    )


@words_for("raises", "other")
def _other_exception(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"bad input raised {data['actual']} ({data['text']}), expected {data['expected']}",
        "Check the sizes first and raise the promised exception (a subclass will do).",
        str(data["expected"]),
        str(data["actual"]),
    )


@words_for("raises", "changed_first")
def _changed_first(data: Mapping[str, Any]) -> Sentence:
    return Sentence(
        f"{data['expected']} was raised, but {data['of']} had been changed before",
        "Check first, write afterwards.",
        f"{data['of']} as it was",
        "partly written",
    )


@words_for("raises", "time_limit", "memory_limit", "process_limit", "output_limit", "killed", "refused")
def _raises_stopped(data: Mapping[str, Any]) -> Sentence:
    ended = str(data["code"]).replace("_", " ")
    return Sentence(
        f"bad input ({data['case']}) ended the run ({ended}), expected {data['expected']}",
        "Check the sizes before anything else.",
        str(data["expected"]),
        ended,
    )
