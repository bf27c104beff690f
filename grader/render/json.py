"""The JSON report (schema 1): exactly `Report.to_json()`, as strict JSON.

Keys keep the document's order. Numbers that JSON has no form for become the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from grader.report import Report


def render_json(report: Report) -> str:
    """One JSON document, ended by a line break. ASCII only, so that any output encoding carries it."""
    return json.dumps(strict(report.to_json()), indent=2, allow_nan=False) + "\n"


def strict(value: Any) -> Any:
    """The value as JSON can hold it: finite numbers, string keys, lists, valid Unicode."""
    if isinstance(value, bool | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_text(key): strict(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [strict(member) for member in value]
    if isinstance(value, set | frozenset):
        return sorted((strict(member) for member in value), key=str)
    return _text(value)


def _text(value: Any) -> str:
    """As a string; lone surrogates, which UTF-8 cannot carry, become question marks."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
