"""The checks: one pure module each, registered under its name on import."""

from grader.checks import (  # noqa: F401
    allocation,
    causality,
    contiguous,
    determinism,
    device,
    dtype,
    finite,
    forbidden,
    gradient,
    mutation,
    no_copy,
    raises,
    required,
    returns,
    shape,
    single_storage,
    strides,
    values,
)
