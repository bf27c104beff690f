"""The JSON Schema of problem files (draft 2020-12), which editors read to complete and check as one types.

It is derived from the models; only `checks` is rewritten, so that each check offers its own options.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import models_json_schema

from grader.spec.checks import CHECKS, CheckKind
from grader.spec.model import Problem

_ABOUT = {
    "returns": "The result is a plain tensor, or as many as asked, in the right structure.",
    "shape": "The result has the asked shape.",
    "dtype": "The result has the input's dtype.",
    "device": "The result lies on the input's device.",
    "finite": "No NaN or infinity where the reference has none.",
    "values": "The result equals the reference, within what honest rounding explains.",
    "strides": "The strides are the reference's, for the strides of the input.",
    "single_storage": "The results share one storage.",
    "determinism": "The same call gives the same result.",
    "raises": "Each entry of `errors` gets the promised exception.",
}
"""What the checks without options hold; those with options say it in their model."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def problem_schema() -> dict[str, Any]:
    """The schema of a problem file."""
    models = [(Problem, "validation"), *((kind.options, "validation") for kind in CHECKS.values())]
    places, shared = models_json_schema(models)  # type: ignore[arg-type]
    definitions = shared["$defs"]
    definitions.pop("CheckUse")
    problem = definitions.pop("Problem")
    problem["properties"]["checks"]["items"] = {"anyOf": _uses(places)}
    problem["title"] = "A mhaquiz problem"
    return {"$schema": DIALECT, **problem, "$defs": definitions}


def schema_text() -> str:
    """The schema as docs/problem.schema.json holds it."""
    return json.dumps(problem_schema(), indent=2, ensure_ascii=False) + "\n"


def _uses(places: Any) -> list[dict[str, Any]]:
    """Every way to name a check: alone, with options beside its name, or as `name` and `options`."""
    options = {kind.name: places[kind.options, "validation"] for kind in CHECKS.values()}
    alone = [_alone(kind) for kind in CHECKS.values() if not _needs_options(kind)]
    short = [_keyed({name: {"anyOf": [ref, {"type": "null"}]}}, [name]) for name, ref in options.items()]
    long = [
        _keyed({"name": {"const": name}, "options": ref}, _long_keys(name)) for name, ref in options.items()
    ]
    return [*alone, *short, *long]


def _alone(kind: CheckKind) -> dict[str, Any]:
    about = _ABOUT.get(kind.name) or (kind.options.__doc__ or "").strip()
    return {"const": kind.name, "description": about}


def _needs_options(kind: CheckKind) -> bool:
    return any(field.is_required() for field in kind.options.model_fields.values())


def _long_keys(name: str) -> list[str]:
    return ["name", "options"] if _needs_options(CHECKS[name]) else ["name"]


def _keyed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
