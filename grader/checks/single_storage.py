"""single_storage: all results are views of one storage."""

from __future__ import annotations

from grader.checks.registry import View, check
from grader.report import Finding


@check("single_storage")
def single_storage(view: View) -> Finding | None:
    """Every result names the same storage."""
    storages = {
        actual.storage for _, _, actual in view.leaves() if actual.data is not None and actual.data.numel()
    }
    if len(storages) > 1:
        return view.finding("single_storage", "several", actual=len(storages))
    return None
