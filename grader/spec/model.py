"""What a problem file may say, as pydantic models: the format, version 1. No torch.

Every field's description is what an author reads in the published JSON Schema (`mhaquiz schema`).
The models check one file's own sense; what needs the solution file is checked by the gate.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

FORMAT = 1

# As the value of an input in a case: the argument is left out of the call, so that its default shows.
OMIT = "omit"

Scalar = int | float | bool | str | None


class Model(BaseModel):
    """Base: unknown keys are mistakes, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ValueKind = Literal[
    "normal",
    "weights",
    "integers",
    "positions",
    "per-head",
    "hostile",
    "one-hot",
    "masked",
    "bool",
    "keep",
    "ids",
]
LayoutName = Literal["dense", "fused", "transposed", "sequence-first", "sliced", "strided"]
DType = Literal["float", "bool", "int64", "int32", "float32", "float64"]
FloatName = Literal["float64", "float32", "bfloat16", "float16"]


def _as_tuple(value: Any) -> Any:
    """YAML has lists only; files are validated strictly, where a list is no tuple."""
    return tuple(value) if isinstance(value, list) else value


class MemoryLayout(Model):
    """How an input lies in memory, when no named layout fits."""

    order: list[int] | None = Field(
        default=None, description="Axes from slowest to fastest in memory, e.g. [0, 2, 1, 3]."
    )
    pad: dict[int, Annotated[tuple[int | str, int | str], BeforeValidator(_as_tuple)]] = Field(
        default_factory=dict,
        description="Elements of the buffer before and after the input along an axis: {-1: [D, D]}.",
    )
    step: dict[int, int] = Field(default_factory=dict, description="Take every n-th element along an axis.")


class TensorInput(Model):
    """A tensor argument: its symbolic shape, what values it holds and how it lies in memory."""

    shape: str = Field(
        description='Symbolic shape, e.g. "B S (H d)"; groups are products, numbers are literal.'
    )
    values: ValueKind | None = Field(
        None, description="What the elements are; the problem's `values` when absent."
    )
    dtype: DType = Field("float", description="`float` follows the run's precision; others are fixed.")
    layout: LayoutName | MemoryLayout = Field("dense", description="How it lies in memory.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the value kind.")


class ModuleInput(Model):
    """A library module whose weights are drawn like any input (only nn.MultiheadAttention so far)."""

    torch_mha: dict[Literal["embed_dim", "num_heads", "bias", "batch_first"], Scalar]


class ListInput(Model):
    """A list of inputs."""

    items: list[Input] = Field(alias="list")


class DictInput(Model):
    """A dictionary of inputs."""

    members: dict[str, Input] = Field(alias="dict")


Input = Annotated[
    TensorInput | ModuleInput | ListInput | DictInput | Scalar,
    Field(description="A tensor, a module, a list, a dict, a literal, or an expression over the sizes."),
]


class Step(Model):
    """One step of a call; a function problem needs none (it is called once with its inputs in order)."""

    do: Literal["call", "new", "method", "to", "eval", "train", "scrub", "parameters"]
    name: str | None = Field(None, description="The entry, class or method; the problem's entry when absent.")
    on: str | None = Field(
        None, description="The saved object a method or `to` works on; the last `new` when absent."
    )
    args: list[str] = Field(default_factory=list, description="Names of inputs or saved results, in order.")
    save: str | None = Field(None, description="Name under which the result is kept for later steps.")
    observe: bool = Field(False, description="Judge this step's result.")


Size = int | str | list[int]


class Case(Model):
    """One family of calls: sizes, and what differs from the problem's inputs."""

    name: str = Field(description="Shown to the reader; say what is special about it.")
    visible: bool = Field(False, description="Visible cases may be shown with all their sizes and values.")
    sizes: dict[str, Size] = Field(
        default_factory=dict,
        description='A number, an expression of earlier sizes ("K*G"), a range ("2..5") or a list to draw from.',
    )
    inputs: dict[str, Input] = Field(default_factory=dict, description="Inputs that differ in this case.")
    layouts: dict[str, LayoutName | MemoryLayout] = Field(
        default_factory=dict, description="Memory layouts that differ, by input."
    )
    values: dict[str, ValueKind] = Field(
        default_factory=dict, description="Value kinds that differ, by input."
    )
    dtypes: list[FloatName] | None = Field(
        None, description="Precisions of this case; the problem's when absent."
    )
    numbers: Literal["exact", "real"] | None = Field(
        None,
        description="`exact` for a case whose answer is exact in every honest version; the problem's when absent.",
    )
    gradients: bool = Field(True, description="Whether gradients are judged on this case too.")
    only: list[str] | None = Field(None, description="The only checks that look at this case.")
    skip: list[str] = Field(default_factory=list, description="Checks that do not look at this case.")


class ErrorCase(Model):
    """Bad input that must be refused with the promised exception."""

    name: str
    visible: bool = False
    raises: Literal["ValueError", "TypeError", "IndexError"] = "ValueError"
    sizes: dict[str, Size] = Field(default_factory=dict)
    inputs: dict[str, Input] = Field(default_factory=dict)
    unchanged: list[str] = Field(
        default_factory=list, description="Inputs that must be untouched although the call failed."
    )
    steps: int | None = Field(
        None,
        gt=0,
        description="Run only so many of the problem's steps: a class that must raise when it is built.",
    )


class Mistake(Model):
    """A known wrong version; `wrong_<id>` in the solution file is its code."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: str = Field(description="A few words, e.g. 'viewed straight to (B, H, S, d)'.")
    what: str = Field(description="What you did, addressed to the learner.")
    why: str = Field(description="Why it matters.")
    fix: str = Field(description="The fix in words.")
    source: str | None = Field(None, description="Where the mistake was seen: a report, a thread.")


class FollowUp(Model):
    """What an interviewer asks next."""

    question: str
    approach: str = Field(description="What a strong answer does, in our own words.")
    weak: str = Field(description="What a weak answer sounds like.")


class RealSystem(Model):
    """A real system that does this."""

    name: str
    fact: str
    source: str


class Reference(Model):
    """Further reading."""

    title: str
    where: str = Field(description="A citation or an address.")


class Limits(Model):
    """Limits of one submission's run, when the defaults do not fit."""

    seconds: float | None = Field(default=None, gt=0, le=120, description="Time for all calls.")
    memory_mb: int | None = Field(default=None, gt=0, le=16384, description="Memory beyond what torch takes.")


def _named_check(value: Any) -> Any:
    """`strides` is short for `{name: strides}`, `{no_copy: {of: x}}` for `{name: no_copy, options: {of: x}}`."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and len(value) == 1 and "name" not in value:
        ((name, options),) = value.items()
        return {"name": name, "options": options if options is not None else {}}
    return value


class CheckUse(Model):
    """A check that this problem uses, with its options (see grader/spec/checks.py)."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class Problem(Model):
    """One problem: everything but its code, which lies in solutions/<track>/<id>.py."""

    format: Literal[1] = Field(description="Version of this format.")
    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="As typed: `mhaquiz attempt <id>`.")
    title: str = Field(description="A short name, shown in lists and above every report.")
    track: str = Field(description="The folder the file lies in: mha, gqa, positions, cache, ...")
    level: int = Field(ge=1, le=5, description="1 warm-up, 2 easy, 3 medium, 4 hard, 5 expert.")
    minutes: int = Field(gt=0, le=120, description="How long it takes in an interview.")
    requires: list[str] = Field(default_factory=list, description="Problems to solve first.")
    summary: str = Field(description="One sentence for the list.")
    statement: str = Field(description="Markdown, with a worked example.")
    signature: str = Field(description="As documented: `split_heads(x, num_heads)`.")
    entry: str = Field(description="The name the submission must define.")
    kind: Literal["function", "class"] = Field(
        "function", description="What the entry is; a class needs `steps`."
    )
    starter: str = Field(description="The file a learner starts from: typed, documented, not a solution.")
    inputs: dict[str, Input] = Field(description="The arguments, in the order of the call.")
    returns: list[str] | str = Field(description="Symbolic shape of the result, or one for each result.")
    steps: list[Step] = Field(default_factory=list, description="For classes and for more than one call.")
    numbers: Literal["exact", "real"] = Field(
        description="`exact` when every step moves, adds or multiplies integers; `real` otherwise."
    )
    values: ValueKind = Field("normal", description="What inputs hold unless they say otherwise.")
    dtypes: list[FloatName] | None = Field(None, description="Precisions; all four when absent.")
    cases: list[Case] = Field(min_length=1, description="The calls the submission is judged on.")
    errors: list[ErrorCase] = Field(
        default_factory=list, description="Calls it must refuse; needs the check `raises`."
    )
    checks: list[Annotated[CheckUse, BeforeValidator(_named_check)]] = Field(
        default_factory=list, description="Checks beside the ones every problem has."
    )
    mistakes: list[Mistake] = Field(min_length=1, description="Known wrong versions, named when met.")
    hints: list[str] = Field(min_length=3, max_length=3, description="Three, of rising help.")
    followups: list[FollowUp] = Field(min_length=1, description="What an interviewer asks next.")
    red_flags: list[str] = Field(min_length=1, description="What not to say in an interview.")
    real_systems: list[RealSystem] = Field(min_length=1, description="Real systems that do this.")
    when_not: list[str] = Field(min_length=1, description="When not to use it.")
    references: list[Reference] = Field(min_length=1, description="Further reading.")
    limits: Limits = Field(default=Limits(), description="Limits of a run, where the defaults do not fit.")


ListInput.model_rebuild()
DictInput.model_rebuild()
Case.model_rebuild()
ErrorCase.model_rebuild()
Problem.model_rebuild()
