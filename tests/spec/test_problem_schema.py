"""The published JSON Schema: valid, in step with the models, and accepting what the loader accepts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sample_problem import TEXT, write

from grader.errors import ProblemFileError
from grader.spec.checks import CHECKS
from grader.spec.load import load_problem
from grader.spec.schema import problem_schema, schema_text
from grader.spec.yamltext import parse

ROOT = Path(__file__).parents[2]
SAMPLE = parse(TEXT, "swap.yaml").data


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(problem_schema())


def test_the_schema_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    assert problem_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    validator.check_schema(problem_schema())


def test_the_published_schema_is_in_step() -> None:
    published = (ROOT / "docs" / "problem.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(), "write it anew: mhaquiz schema > docs/problem.schema.json"


def test_every_shipped_problem_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    paths = sorted((ROOT / "problems").glob("*/*.yaml"))
    assert paths
    for path in paths:
        data = parse(path.read_text(encoding="utf-8"), str(path)).data
        assert [error.message for error in validator.iter_errors(data)] == []


def test_every_key_of_a_problem_is_described_and_every_reference_resolves() -> None:
    schema = problem_schema()
    assert [key for key, value in schema["properties"].items() if "description" not in value] == []
    assert all(reference in schema["$defs"] for reference in _references(schema))
    assert all("description" in definition for definition in schema["$defs"].values())


def test_every_check_that_can_stand_alone_says_what_it_holds() -> None:
    uses = problem_schema()["properties"]["checks"]["items"]["anyOf"]
    alone = {use["const"]: use["description"] for use in uses if "const" in use}
    assert "no_copy" not in alone, "it needs options"
    assert alone["strides"] == "The strides are the reference's, for the strides of the input."
    assert alone["gradient"] == "Gradients must equal the reference's."
    assert len(set(alone.values())) == len(alone), "each has words of its own"


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_references, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"].removeprefix("#/$defs/")} if isinstance(value.get("$ref"), str) else set()
    return own.union(*map(_references, value.values()))


def _with_check(use: Any) -> dict[str, Any]:
    data: dict[str, Any] = copy.deepcopy(SAMPLE)
    data["checks"] = [use, "raises"]
    data["cases"][1].pop("skip")
    return data


USES: list[Any] = [
    *CHECKS,
    {"no_copy": {"of": "x"}},
    {"name": "no_copy", "options": {"of": ["x"]}},
    {"name": "no_copy"},
    {"gradient": None},
    {"gradient": {"of": ["x"], "parameters": True}},
    {"gradient": {"off": ["x"]}},
    {"no_copy": {}},
    {"strides": {}, "gradient": {}},
    {"causality": {"inputs": {"x": 1}, "axis": 2}},
    {"causality": {"inputs": {"x": "1"}, "axis": 2}},
    {"strid": {}},
    "strid",
    5,
]


@pytest.mark.parametrize("use", [use for use in USES if use != "raises"], ids=str)
def test_the_schema_and_the_loader_agree_on_checks(
    use: Any, validator: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    data = _with_check(use)
    assert validator.is_valid(data) == _loads(data, tmp_path)


def _loads(data: dict[str, Any], folder: Path) -> bool:
    try:
        load_problem(write(folder, json.dumps(data)))
    except ProblemFileError:
        return False
    return True
