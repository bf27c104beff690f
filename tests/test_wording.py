"""Every finding has words, and the words are what is pinned here."""

# ruff: noqa: E501 - a sentence is one line

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import grader.checks
from grader.report import Finding, Outcome
from grader.wording import Sentence, codes, sentence

FOLDER = Path(grader.checks.__file__).parent

# Where a code is no literal in the check's module: what it can be.
_ENDINGS = {str(outcome) for outcome in Outcome} - {"returned", "raised"}
COMPUTED = {
    "returns": {"type", "stacked", "flagged", "unreadable", *_ENDINGS},
    "raises": _ENDINGS,
    "values": {"value", "nonfinite"},
    "allocation": {"explicit", "held", "new", "largest", "peak"},
    "gradient": {"missing", "wrong"},
}


def emitted(path: Path) -> set[tuple[str, str]]:
    """Every (check, code) that a check's module makes a finding of."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "finding"
        ):
            continue
        check = ast.literal_eval(node.args[0])
        literals = [n.value for n in ast.walk(node.args[1]) if isinstance(n, ast.Constant)]
        if isinstance(node.args[1], ast.Constant):
            found.add((check, str(node.args[1].value)))
        elif isinstance(node.args[1], ast.IfExp):
            found |= {
                (check, str(part.value))
                for part in (node.args[1].body, node.args[1].orelse)
                if isinstance(part, ast.Constant)
            }
        else:
            assert check in COMPUTED, f"{path.name} computes a code that this test does not know: {literals}"
            found |= {(check, code) for code in COMPUTED[check]}
    return found


def test_every_finding_of_every_check_has_words_and_no_words_are_idle() -> None:
    modules = [path for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "registry")]
    assert set().union(*map(emitted, modules)) == codes()


NUMBERS = {"result": 0, "index": [0, 1], "expected": 2.0, "actual": 3.5, "wrong": 4, "total": 9, "times": 5.0}
STOPPED = {
    "time_limit": (
        "the run was stopped at the time limit: d",
        "Look for a loop that never ends. For code that is compiled first, `--seconds 120` allows more.",
    ),
    "memory_limit": (
        "the run was stopped at the memory limit: d",
        "Look for a tensor far larger than the inputs.",
    ),
    "process_limit": (
        "the run was stopped at the process limit: d",
        "A solution needs no processes of its own.",
    ),
    "output_limit": ("the run was stopped at the output limit: d", "Remove the prints from the loop."),
    "killed": (
        "the run ended before your code returned: d",
        "It crashed the interpreter or ended the process.",
    ),
    "refused": ("the run's answers could not be read: d", "Your code wrote to the grader's own channel."),
}
ODD_WHY = "Return an ordinary torch.Tensor with its own elements."
BUDGET = {"used": 2048, "allowed": 10, "of": ["k", "v"], "call": "clone", "itemsize": 4, "budget": "2*d"}
ALL_WHY = "Everything that the call allocates counts, whichever operation does it."
COPIES_WHY = "Only copies that your code asks for count; what matmul copies inside does not."
INPLACE = "Look for an operation that ends in an underscore, `+=`, or an assignment into a view."

# check, code, data, the sentence.
PINNED: list[tuple[str, str, dict[str, Any], Sentence]] = [
    *[("returns", kind, {"detail": "d"}, Sentence(*words)) for kind, words in STOPPED.items()],
    ("returns", "killed", {"detail": ""}, Sentence("the run ended before your code returned", STOPPED["killed"][1])),
    ("returns", "raised", {"type": "KeyError", "text": "'q'"}, Sentence("your code raised KeyError: 'q'")),
    ("returns", "raised", {"type": "KeyError", "text": ""}, Sentence("your code raised KeyError")),
    ("returns", "raised", {"type": "NotImplementedError", "text": ""}, Sentence("your code raised NotImplementedError", "Part of the starter is still to be written.")),
    ("returns", "raised", {"type": "TypeError", "text": "f() takes 1 positional argument but 2 were given"},
     Sentence("your code raised TypeError: f() takes 1 positional argument but 2 were given", "If the call itself does not fit, compare your parameters with the signature in `mhaquiz show`.")),
    ("returns", "type", {"expected": "a tensor", "actual": "None"}, Sentence("your code returned None, expected a tensor", "Did you forget the return statement?", "a tensor", "None")),
    ("returns", "type", {"expected": "a tensor", "actual": "numpy.ndarray"}, Sentence("your code returned numpy.ndarray, expected a tensor", "Stay in torch: gradients and devices end where numpy begins.", "a tensor", "numpy.ndarray")),
    ("returns", "type", {"expected": "a tensor", "actual": "int 3"}, Sentence("your code returned int 3, expected a tensor", "", "a tensor", "int 3")),
    ("returns", "stacked", {"expected": "a tuple of 2", "actual": "a tensor of shape (2,)"}, Sentence("your code returned a tensor of shape (2,), expected a tuple of 2", "Return the results side by side (`return a, b, c`), not stacked into one tensor: stacking copies them.", "a tuple of 2", "a tensor of shape (2,)")),
    ("returns", "flagged", {"expected": "e", "actual": "a"}, Sentence("your code returned a, expected e", ODD_WHY, "e", "a")),
    ("returns", "unreadable", {"expected": "e", "actual": "a"}, Sentence("your code returned a, expected e", ODD_WHY, "e", "a")),
    ("shape", "shape", {"result": 0, "axes": ["B", "S"], "expected": [2, 3], "actual": [3, 2]}, Sentence("the result has shape (3, 2), expected (2, 3) (B, S)", "The sizes are right, the order of the axes is not.", "(2, 3)", "(3, 2)")),
    ("shape", "shape", {"result": 1, "axes": [], "expected": [2, 3], "actual": [6]}, Sentence("result 2 has shape (6,), expected (2, 3)", "The result has 1 axes, not 2.", "(2, 3)", "(6,)")),
    ("shape", "shape", {"result": 0, "axes": [], "expected": [2, 3], "actual": [2, 4]}, Sentence("the result has shape (2, 4), expected (2, 3)", "", "(2, 3)", "(2, 4)")),
    ("dtype", "dtype", {"expected": "float16", "actual": "float32"}, Sentence("the result is float32, expected float16", "Whatever precision is used inside, the result goes back to the input's dtype.", "float16", "float32")),
    ("device", "device", {"expected": "cuda", "actual": "cpu"}, Sentence("the result is on cpu, the inputs are on cuda", "Create helper tensors with device=x.device.", "cuda", "cpu")),
    ("finite", "nan", {"index": [1], "count": 2, "total": 3, "dtype": "float16", "expected": 0.5, "actual": "NaN"}, Sentence("2 of 3 elements are NaN in float16; the first is out[1], expected 0.5", "NaN comes from inf - inf, 0 * inf, 0 / 0 or a softmax over nothing but -inf.", "0.5", "NaN")),
    ("finite", "infinite", {"index": [], "count": 1, "total": 1, "dtype": "float16", "expected": 0.5, "actual": "infinity"}, Sentence("1 of 1 elements are infinite in float16; the first is the result, expected 0.5", "Something overflowed: an exponential of a large number, or a 16-bit product.", "0.5", "infinity")),
    ("values", "value", {**NUMBERS, "phase": "exact"}, Sentence("4 of 9 elements are wrong; out[0, 1] is 3.5, expected 2", "This value is exact in every precision, so nothing may differ.", "2", "3.5")),
    ("values", "value", {**NUMBERS, "phase": "logic"}, Sentence("4 of 9 elements are wrong; out[0, 1] is 3.5, expected 2", "In double precision, so rounding is no excuse.", "2", "3.5")),
    ("values", "value", {**NUMBERS, "phase": "hygiene", "honest": 12.345, "dtype": "bfloat16"}, Sentence("4 of 9 elements are wrong; out[0, 1] is 3.5, expected 2", "Only the precision is at fault: the error is 12.3 x what an honest bfloat16 version makes.", "2", "3.5")),
    ("values", "value", {**NUMBERS, "phase": "hygiene", "honest": None, "dtype": "bfloat16"}, Sentence("4 of 9 elements are wrong; out[0, 1] is 3.5, expected 2", "Only the precision is at fault: the error is far more than rounding makes.", "2", "3.5")),
    ("values", "nonfinite", {**NUMBERS, "expected": float("-inf")}, Sentence("4 of 9 elements are infinite or NaN in the wrong place; out[0, 1] is 3.5, expected -inf", "Where a mask belongs, -inf must stand exactly there and nowhere else.", "-inf", "3.5")),
    ("values", "number", {"expected": "6", "actual": "7"}, Sentence("the result is 7, expected 6", "", "6", "7")),
    ("strides", "strides", {"axes": ["B", "S"], "shape": [2, 3], "expected": [3, 1], "actual": [1, 2]}, Sentence("the result has strides (1, 2), expected (3, 1) (differs on B, S)", "A stride says how many elements lie between neighbours along an axis. Right shape, other walk.", "(3, 1)", "(1, 2)")),
    ("strides", "strides", {"axes": ["B", "S"], "shape": [1, 3], "expected": [3, 1], "actual": [9, 2]}, Sentence("the result has strides (9, 2), expected (3, 1) (differs on S)", "A stride says how many elements lie between neighbours along an axis. Right shape, other walk.", "(3, 1)", "(9, 2)")),
    ("no_copy", "copied", {"of": "x", "new_bytes": 320}, Sentence("the result does not share memory with x", "It lies in new memory of 320 bytes. This stage only re-labels memory; nothing moves.", "a view of x", "new storage, 320 bytes")),
    ("no_copy", "copied", {"of": "x", "new_bytes": 524288}, Sentence("the result does not share memory with x", "It lies in new memory of 512 KiB. This stage only re-labels memory; nothing moves.", "a view of x", "new storage, 512 KiB")),
    ("no_copy", "copied", {"of": "x", "new_bytes": 3 << 20, "result": 2}, Sentence("result 3 does not share memory with x", "It lies in new memory of 3 MiB. This stage only re-labels memory; nothing moves.", "a view of x", "new storage, 3 MiB")),
    ("no_copy", "false_claim", {"of": "x"}, Sentence("the result lies in the memory of x, but does not hold what that memory held", "The input was changed, or the view was tampered with.", "a view of x", "other contents")),
    ("single_storage", "several", {"actual": 3}, Sentence("the results lie in 3 storages, expected 1", "One product gives all of them; cutting it up is a view.", "1 storage", "3 storages")),
    ("contiguous", "not_contiguous", {"expected": [3, 1], "actual": [1, 2]}, Sentence("the result was copied and is still not contiguous: strides (1, 2), expected (3, 1)", "If a copy is made at all, make it in the order in which it is read.", "(3, 1)", "(1, 2)")),
    ("allocation", "explicit", BUDGET, Sentence("your code copies 2048 elements of k and v, allowed 10 (2*d); most of it in `clone`", COPIES_WHY, "at most 40 bytes", "8 KiB")),
    ("allocation", "held", BUDGET, Sentence("your code holds copies of 2048 elements of k and v, allowed 10 (2*d); most of it in `clone`", COPIES_WHY, "at most 40 bytes", "8 KiB")),
    ("allocation", "new", {**BUDGET, "of": [], "call": None}, Sentence("your code takes new memory for 2048 elements, allowed 10 (2*d)", ALL_WHY, "at most 40 bytes", "8 KiB")),
    ("allocation", "largest", BUDGET, Sentence("the largest single tensor has 2048 elements of k and v, allowed 10 (2*d); most of it in `clone`", ALL_WHY, "at most 40 bytes", "8 KiB")),
    ("allocation", "peak", BUDGET, Sentence("at its peak your code holds 2048 elements of k and v, allowed 10 (2*d); most of it in `clone`", ALL_WHY, "at most 40 bytes", "8 KiB")),
    ("allocation", "untraceable", {"operators": ["aten::clone", "aten::cat"]}, Sentence("your code cannot be traced, and it copies: aten::clone, aten::cat", "Write the stage without compiling or scripting it, so that its copies can be shown.")),
    ("forbidden", "unwatched", {}, Sentence("the grader's watch over your call was switched off while it ran", "This stage refuses library calls, so every call is watched. Leave the library's profiler alone.")),
    ("forbidden", "library_call", {"call": "softmax"}, Sentence("`softmax` does the exercise for you", "This stage is to be written from primitives; the library's own version is refused, wherever it is called.", "primitives", "softmax")),
    ("required", "other_move", {"call": "transpose", "expected": "as_strided"}, Sentence("`transpose` moves or re-views data; here only as_strided may", "The point is to write the strides down yourself.", "as_strided", "transpose")),
    ("required", "unused", {"expected": "as_strided"}, Sentence("as_strided was never called", "The stage asks for it by name.", "as_strided")),
    ("required", "products", {"expected": 1, "actual": 3}, Sentence("3 matrix products ran, expected at most 1", "Fusing means that one product serves all of them.", "1", "3")),
    ("mutation", "changed", {"of": "k"}, Sentence("k was changed by the call", f"The caller still owns its tensor. {INPLACE}", "k as it was", "k with other values")),
    ("mutation", "relabelled", {"of": "k"}, Sentence("the axes of k were changed in place", "A method that ends in an underscore (`transpose_`, `unsqueeze_`, `resize_`) changes the caller's own tensor: leave the underscore out.", "k with the axes that it had", "other axes")),
    ("raises", "returned_instead", {"expected": "ValueError", "actual": "None", "case": "an odd D"}, Sentence("bad input gave None (an odd D); expected ValueError to be raised", "An exception is raised, not returned: `raise ValueError(...)`.", "ValueError", "None")),
    ("mutation", "changed_back", {"of": "k"}, Sentence("k was written to during the call, even if its values are the same again", "Anything else that reads the tensor meanwhile, autograd included, sees the edit.", "k untouched", "written in place")),
    ("determinism", "differs", {"index": [1], "first": 1.0, "second": 2.0}, Sentence("two calls with the same inputs gave different results: out[1] was 1, then 2", "Look for dropout, random numbers, or state kept from one call to the next.")),
    ("determinism", "differs", {"index": []}, Sentence("two calls with the same inputs gave different results", "Look for dropout, random numbers, or state kept from one call to the next.")),
    ("determinism", "changed_later", {}, Sentence("a result changed after it had been returned", "A buffer shared between calls, or work that goes on in the background, overwrites it.")),
    ("determinism", "threads", {"actual": 1}, Sentence("1 thread was still running after the call returned", "Join every thread before returning; a result must be complete.")),
    ("determinism", "threads", {"actual": 2}, Sentence("2 threads were still running after the call returned", "Join every thread before returning; a result must be complete.")),
    ("causality", "future_seen", {"position": 1, "changed_from": 2, "before": 0.5, "after": 0.75}, Sentence("position 1 changed when only positions from 2 on were changed", "A query may see itself and what came before it. Look at the mask's direction and its alignment.", "0.5", "0.75")),
    ("gradient", "raised", {"type": "RuntimeError", "text": "no"}, Sentence("with gradients required, your code raised RuntimeError: no", "Without them it ran. In-place edits of inputs and of saved results are the usual cause.")),
    ("gradient", "backward_raised", {"type": "RuntimeError", "text": "no"}, Sentence("backward raised RuntimeError: no", "A tensor that backward needs was edited in place, or the graph was cut.")),
    ("gradient", "missing", {"of": "q"}, Sentence("no gradient reaches q", "`detach`, `.data`, `no_grad`, `item` or numpy cut the graph.", "a gradient for q", "none")),
    ("gradient", "wrong", {**NUMBERS, "of": "q", "phase": "logic", "dtype": "float64"}, Sentence("the gradient of q is wrong: at [0, 1] it is 3.5, expected 2", "The values are right, so part of the computation is cut off from autograd or rounded on the way back.", "2", "3.5")),
    ("gradient", "wrong", {**NUMBERS, "of": "q", "phase": "hygiene", "dtype": "float16"}, Sentence("the gradient of q is wrong in float16: at [0, 1] it is 3.5, expected 2", "The values are right, so part of the computation is cut off from autograd or rounded on the way back.", "2", "3.5")),
    ("gradient", "parameter_missing", {"count": 1, "total": 8}, Sentence("1 of 8 parameters get no gradient", "Weights must be registered as parameters of the module and be used in forward.", "a gradient for every parameter", "1 without")),
    ("gradient", "parameter_not_finite", {"count": 2, "total": 8}, Sentence("2 of 8 parameters get a NaN or infinite gradient", "Fully masked rows and overflowing exponentials are the usual cause.", "finite gradients", "2 not finite")),
    ("raises", "not_raised", {"case": "odd", "expected": "ValueError"}, Sentence("bad input was accepted (odd); expected ValueError", "The statement promises the exception: a caller must learn of bad sizes where they arise.", "ValueError", "it returned")),
    ("raises", "other", {"actual": "TypeError", "text": "no", "expected": "ValueError"}, Sentence("bad input raised TypeError (no), expected ValueError", "Check the sizes first and raise the promised exception (a subclass will do).", "ValueError", "TypeError")),
    ("raises", "changed_first", {"of": "cache", "expected": "ValueError"}, Sentence("ValueError was raised, but cache had been changed before", "Check first, write afterwards.", "cache as it was", "partly written")),
    *[("raises", kind, {"case": "odd", "expected": "ValueError"}, Sentence(f"bad input (odd) ended the run ({kind.replace('_', ' ')}), expected ValueError", "Check the sizes before anything else.", "ValueError", kind.replace("_", " "))) for kind in STOPPED],
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "code", "data", "words"), PINNED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_words_of_a_finding(check: str, code: str, data: dict[str, Any], words: Sentence) -> None:
    assert sentence(Finding(check, code, data)) == words


def test_every_code_is_pinned() -> None:
    assert {(check, code) for check, code, _, _ in PINNED} == codes()
