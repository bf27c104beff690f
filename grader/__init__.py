"""mhaquiz: an attention grader that is itself tested.

    from grader import check
    check("split-heads", "split_heads.py")

The names below are loaded when used, so that `import grader` alone is fast and imports no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.api import check, grade, load_problem
    from grader.report import Report
    from grader.version import VERSION as __version__

__all__ = ["Report", "__version__", "check", "grade", "load_problem"]

_HOMES = {
    "check": ("grader.api", "check"),
    "grade": ("grader.api", "grade"),
    "load_problem": ("grader.api", "load_problem"),
    "Report": ("grader.report", "Report"),
    "__version__": ("grader.version", "VERSION"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
