"""required: only the named operations move or re-view data; at most so many products in one call."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.report import Finding, Outcome
from grader.spec.checks import RequiredOptions

# Calls that hand back the same elements elsewhere or under other strides.
_MOVES = frozenset(
    "view reshape view_as reshape_as transpose permute swapaxes swapdims movedim moveaxis t T mT H mH unsqueeze "
    "squeeze expand expand_as flatten unflatten ravel unfold split split_with_sizes tensor_split chunk unbind select "
    "narrow slice __getitem__ diagonal contiguous clone repeat repeat_interleave tile cat concat stack hstack vstack "
    "gather index_select take flip roll einsum matmul __matmul__ bmm as_strided set_ adjoint copy_ to type".split()
)


def _traced(view: View) -> bool:
    return view.trial.traced and view.actual.outcome is Outcome.RETURNED


@check("required", _traced)
def required(view: View) -> Finding | None:
    """The traced trial used what it must and no more."""
    options = RequiredOptions.model_validate(view.options)
    if options.only_moves:
        found = _other_moves(view, options.only_moves)
        if found is not None:
            return found
    products = [o for o in view.actual.operations or () if o.kind == "matmul"]
    most = options.most.get("matmul")
    if most is not None and len(products) > most:
        return view.finding("required", "products", products[most].place, expected=most, actual=len(products))
    return None


def _other_moves(view: View, allowed: list[str]) -> Finding | None:
    for name, place in view.actual.called.items():
        if name in _MOVES and name not in allowed:
            return view.finding("required", "other_move", place, call=name, expected=", ".join(allowed))
    for operation in view.actual.operations or ():
        plain = operation.op.removeprefix("aten.")
        if operation.kind != "compute" and plain not in allowed and plain in _MOVES:
            return view.finding(
                "required", "other_move", operation.place, call=plain, expected=", ".join(allowed)
            )
    ran = {*view.actual.called, *(o.op.removeprefix("aten.") for o in view.actual.operations or ())}
    if ran.isdisjoint(allowed):
        return view.finding("required", "unused", expected=", ".join(allowed))
    return None
