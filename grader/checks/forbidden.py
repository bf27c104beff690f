"""forbidden: no library call that would do the exercise, judged by what ran.

The operator profiler names composite calls even where Python's modes are switched off; the trace adds the
public function's name and its place.
"""

from __future__ import annotations

import re

from grader.checks.registry import View, check
from grader.report import Finding
from grader.spec.checks import ForbiddenOptions

# What the harness reports when its watch over a call was broken off.
UNWATCHED = "unwatched"
FAMILIES = {
    "attention": re.compile(
        r"scaled_dot_product|multi_head_attention|flex_attention|_flash_attention|_efficient_attention|"
        r"transformer_encoder_layer|_transform_bias_rescale_qkv|fused_sdp|_mha_"
    ),
    "softmax": re.compile(r"soft(max|min)|log(cum)?sumexp"),
}


@check("forbidden", lambda view: view.trial.raises is None)
def forbidden(view: View) -> Finding | None:
    """No operator or function of a refused family ran."""
    options = ForbiddenOptions.model_validate(view.options)
    plain = (name.removeprefix("aten::") for name in view.actual.operators)
    if UNWATCHED in view.actual.operators:
        return view.finding("forbidden", "unwatched")
    ran = sorted(plain, key=lambda name: (name.startswith("_"), name))  # public names first: they are read
    if view.actual.operations is not None:
        ops = (operation.op for operation in view.actual.operations)
        ran += [op.removeprefix("aten.") for op in ops if op.startswith("aten.")]
    # An operator that the submission registered itself has a namespace; what runs inside it is seen all the same.
    called = [name for name in view.actual.called if "::" not in name]
    for name in [*called, *ran]:
        family = _family(name, options)
        if family is not None:
            place = view.actual.called.get(name)
            return view.finding("forbidden", "library_call", place, call=name, family=family)
    return None


def _family(name: str, options: ForbiddenOptions) -> str | None:
    if name in options.operations:
        return name
    return next((family for family in options.families if FAMILIES[family].search(name)), None)
