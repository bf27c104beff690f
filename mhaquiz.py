"""`import mhaquiz` is `import grader` under the distribution's name: the same objects, loaded when used."""

from __future__ import annotations

from typing import Any

import grader

_OWN = frozenset({"__all__", "__version__"})


def __getattr__(name: str) -> Any:
    # Not the other double-underscore names: `__path__` would make this module look like a second package.
    if name.startswith("__") and name not in _OWN:
        raise AttributeError(f"module 'mhaquiz' has no attribute {name!r}")
    try:
        return getattr(grader, name)
    except AttributeError:
        raise AttributeError(f"module 'mhaquiz' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *getattr(grader, "__all__", ())})
