"""The checks a problem file may name, their options and what each waits for. No torch.

The code of each check is the module of the same name in grader/checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from grader.spec.model import Model


class NoOptions(Model):
    """A check without options."""


class NoCopyOptions(Model):
    """The result must be a view of a named input."""

    of: str | list[str] = Field(description="The input, or one input for each result.")


class Budget(Model):
    """One bound on new memory, counted in elements of the inputs' precision."""

    metric: Literal["explicit", "held", "new", "largest", "peak"] = Field(
        description=(
            "explicit: the code's own copies of the data of `of`, summed (copies inside matmul and einsum are "
            "shown, never counted). held: the same copies, as many as are alive at once. "
            "new: all new storages, summed. largest: the biggest single storage. peak: live at once."
        )
    )
    of: list[str] = Field(
        default_factory=list, description="Inputs whose copied data counts (explicit and held)."
    )
    at_most: str = Field(description='An expression over the sizes, in elements: "B*S*H*d".')


class AllocationOptions(Model):
    """Bounds on new memory."""

    budgets: list[Budget] = Field(min_length=1, description="Every one must hold.")


class GradientOptions(Model):
    """Gradients must equal the reference's."""

    of: list[str] | None = Field(None, description="Inputs; every floating tensor input when absent.")
    parameters: bool = Field(
        False, description="Every parameter of the built module must get a finite gradient."
    )


class ForbiddenOptions(Model):
    """Library calls that would do the exercise."""

    families: list[Literal["attention", "softmax"]] = Field(
        default_factory=list, description="Whole families, by what ran: attention kernels, softmax functions."
    )
    operations: list[str] = Field(
        default_factory=list, description="Further operations by name, e.g. 'einsum'."
    )


class RequiredOptions(Model):
    """Operations that must, or alone may, be used."""

    only_moves: list[str] = Field(
        default_factory=list,
        description="The only operations that may move or re-view data, e.g. [as_strided].",
    )
    most: dict[Literal["matmul"], int] = Field(
        default_factory=dict, description="At most so many operations of a family in one forward call."
    )


class CausalityOptions(Model):
    """Changing later positions must not change earlier results."""

    inputs: dict[str, int] = Field(description="Inputs and their sequence axis.")
    axis: int = Field(description="The sequence axis of the result.")


class ContiguousOptions(Model):
    """The result is contiguous, except when it is a free view; asked only where the input's memory is dense."""

    of: str = Field(description="The input whose memory decides.")


class MutationOptions(Model):
    """Inputs must be unchanged, but for those named."""

    allow: list[str] = Field(default_factory=list, description="Inputs that the problem says are written to.")


@dataclass(frozen=True)
class CheckKind:
    """A check's name, its options' model and the checks it waits for.

    `always` checks are in every problem. A check is skipped when one it waits for did not pass.
    """

    name: str
    options: type[Model]
    waits_for: tuple[str, ...]
    always: bool = False


_KINDS = (
    CheckKind("returns", NoOptions, (), always=True),
    CheckKind("shape", NoOptions, ("returns",), always=True),
    CheckKind("dtype", NoOptions, ("returns",), always=True),
    CheckKind("device", NoOptions, ("returns",), always=True),
    CheckKind("finite", NoOptions, ("shape",), always=True),
    CheckKind("values", NoOptions, ("shape", "finite"), always=True),
    CheckKind("no_copy", NoCopyOptions, ("shape",)),
    CheckKind("strides", NoOptions, ("shape",)),
    CheckKind("single_storage", NoOptions, ("shape",)),
    CheckKind("contiguous", ContiguousOptions, ("shape",)),
    CheckKind("allocation", AllocationOptions, ("returns", "no_copy")),
    CheckKind("forbidden", ForbiddenOptions, ("returns",)),
    CheckKind("required", RequiredOptions, ("returns",)),
    CheckKind("mutation", MutationOptions, ("returns",), always=True),
    CheckKind("determinism", NoOptions, ("returns",), always=True),
    CheckKind("causality", CausalityOptions, ("shape",)),
    CheckKind("gradient", GradientOptions, ("values",)),
    CheckKind("raises", NoOptions, ()),
)

CHECKS: dict[str, CheckKind] = {kind.name: kind for kind in _KINDS}
