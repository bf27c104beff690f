"""allocation: no more new memory than the problem allows, counted from the traced run.

Only the code's own copies count as explicit: clone, contiguous, repeat, cat, a copying reshape, a cast, an
expansion by arithmetic. Copies inside matmul or einsum are shown to the reader, never counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.checks.registry import View, check
from grader.observe import Operation
from grader.report import Finding, Outcome
from grader.spec.checks import AllocationOptions, Budget
from grader.spec.shapes import evaluate

COPIES = frozenset(["explicit_copy", "reshape_copy", "cast", "expansion"])
ITEMSIZE = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_LEAST_SLACK_BYTES = 4096
# Operators that copy, for code that cannot be traced (compiled functions): the profiler still sees them.
_COPYING_OPERATORS = frozenset(
    f"aten::{n}" for n in ("clone", "repeat", "repeat_interleave", "cat", "stack", "index", "copy_")
)


def _traced(view: View) -> bool:
    return view.trial.traced


@check("allocation", _traced)
def allocation(view: View) -> Finding | None:
    """Each budget holds on the traced trial."""
    if view.actual.outcome is not Outcome.RETURNED or view.actual.operations is None:
        return _untraceable(view)
    for budget in AllocationOptions.model_validate(view.options).budgets:
        over = _over_budget(view, budget, view.actual.operations)
        if over is not None:
            return over
    return None


def _untraceable(view: View) -> Finding | None:
    """What fails only while traced has not failed; but then it must be seen not to copy."""
    used = sorted(view.twin.operators & _COPYING_OPERATORS) if view.twin is not None else []
    budgets = AllocationOptions.model_validate(view.options).budgets
    strict = any(budget.metric == "explicit" and budget.at_most.strip() == "0" for budget in budgets)
    if used and strict:
        return view.finding("allocation", "untraceable", operators=used)
    return None


def _over_budget(view: View, budget: Budget, operations: Sequence[Operation]) -> Finding | None:
    allowed = int(evaluate(budget.at_most, view.trial.sizes))
    itemsize = ITEMSIZE[view.trial.dtype]
    used, worst = measure(budget, operations, view.actual.peak_bytes, itemsize)
    slack = (
        allowed * 0.01
        if budget.metric in ("explicit", "held")
        else max(allowed * 0.01, _LEAST_SLACK_BYTES / itemsize)
    )
    if used <= allowed + slack:
        return None
    return view.finding(
        "allocation",
        budget.metric,
        worst.place if worst else None,
        allowed=allowed,
        used=used,
        of=list(budget.of),
        call=worst.call if worst else None,
        itemsize=itemsize,
        budget=budget.at_most,
    )


def measure(
    budget: Budget, operations: Sequence[Operation], peak_bytes: int, itemsize: int
) -> tuple[int, Operation | None]:
    """Elements used by a metric, and the operation that used most of them."""
    if budget.metric == "explicit":
        counted = [o for o in operations if o.kind in COPIES and _is_of(o, budget.of)]
        return sum(o.written for o in counted), max(counted, key=lambda o: o.written, default=None)
    if budget.metric == "held":
        holding = max(operations, key=lambda o: _alive(o, budget.of), default=None)
        return (_alive(holding, budget.of), holding) if holding is not None else (0, None)
    worst = max(operations, key=lambda o: o.new_bytes, default=None)
    if budget.metric == "new":
        return sum(o.new_bytes for o in operations) // itemsize, worst
    if budget.metric == "largest":
        return max((o.largest for o in operations), default=0) // itemsize, worst
    return peak_bytes // itemsize, worst


def _alive(operation: Operation, names: Sequence[str]) -> int:
    """Elements of the code's own copies of these inputs (of any data when none is named) alive after an operation."""
    return sum(n for of, n in operation.alive.items() if not names or (of and of <= set(names)))


def _is_of(operation: Operation, names: Sequence[str]) -> bool:
    """Whether the copied data is of these inputs alone (any data when none is named)."""
    return not names or (bool(operation.of) and operation.of <= set(names))
