"""A self-contained script that reproduces a failed check without the grader: inputs, call, expected result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grader.inputs import Trial
from grader.observe import Facts, ItemsFacts, Observation, ScalarFacts, TensorFacts

_MOST_ELEMENTS = 400


def snippet(trial: Trial, expected: Observation | None, file: str) -> str | None:
    """The script, or None when the inputs are too large to print."""
    if sum(buffer.numel() for buffer in trial.buffers) > _MOST_ELEMENTS:
        return None
    module = file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    names = dict.fromkeys(step["name"] for step in trial.steps if step["do"] in ("call", "new"))
    source = module if module.isidentifier() else "submission"
    lines = ["import torch", f"from {source} import {', '.join(names)}  # your file", ""]
    lines += [f"{name} = {_value(spec, trial)}" for name, spec in trial.tree.items()]
    lines += _calls(trial)
    if trial.raises:
        lines.append(f"# expected: {trial.raises}")
    elif expected is not None:
        lines += _expected(expected, _result_names(trial))
    return "\n".join(lines) + "\n"


def _value(spec: Mapping[str, Any], trial: Trial) -> str:
    kind = spec["k"]
    if kind == "v":
        return repr(spec["v"])
    if kind == "l":
        return "[" + ", ".join(_value(item, trial) for item in spec["i"]) + "]"
    if kind == "d":
        return "{" + ", ".join(f"{key!r}: {_value(item, trial)}" for key, item in spec["i"].items()) + "}"
    if kind == "mha":
        return f"torch.nn.MultiheadAttention(**{spec['config']!r})  # any weights show it"
    return _tensor(spec, trial)


def _tensor(spec: Mapping[str, Any], trial: Trial) -> str:
    buffer = trial.buffers[spec["b"]]
    dtype = f"dtype={buffer.dtype}"
    view = buffer.as_strided(spec["s"], spec["st"], spec["o"])
    suffix = ".requires_grad_()" if spec.get("g") else ""
    if view.is_contiguous() and view.numel() == buffer.numel():
        return f"torch.tensor({_literal(view)}, {dtype}){suffix}"
    place = f"as_strided({tuple(spec['s'])}, {tuple(spec['st'])}, {spec['o']})"
    return f"torch.tensor({_literal(buffer)}, {dtype}).{place}{suffix}"


def _literal(tensor: torch.Tensor) -> str:
    text = repr(_rounded(tensor.tolist()))
    return text.replace("nan", "float('nan')").replace("inf", "float('inf')")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value == int(value) and abs(value) < 1e6 else float(f"{value:.9g}")
    return value


def _result_names(trial: Trial) -> list[str]:
    """The name of each judged result, in order."""
    observed = [step for step in trial.steps if step["observe"]]
    return [step.get("save") or _numbered("out", number) for number, step in enumerate(observed)]


def _numbered(name: str, number: int) -> str:
    return f"{name}{number + 1}" if number else name


def _calls(trial: Trial) -> list[str]:
    lines = []
    results = iter(_result_names(trial))
    for step in trial.steps:
        arguments = ", ".join(step["args"])
        target = step.get("on") or "module"
        name = next(results) if step["observe"] else step.get("save")
        left = f"{name} = " if name else ""
        if step["do"] == "call":
            lines.append(f"{left}{step['name']}({arguments})")
        elif step["do"] == "new":
            lines.append(f"{step.get('save') or 'module'} = {step['name']}({arguments})")
        elif step["do"] == "method":
            method = "" if step["name"] in ("forward", "__call__") else f".{step['name']}"
            lines.append(f"{left}{target}{method}({arguments})")
        elif step["do"] == "to":
            lines.append(f"{target}.to({f'torch.{trial.dtype}'})")
        elif step["do"] in ("eval", "train"):
            lines.append(f"{target}.{step['do']}()")
        elif step["do"] == "parameters":
            lines.append(f"{left}sum(p.numel() for p in {target}.parameters())")
    return lines


def _expected(expected: Observation, names: Sequence[str]) -> list[str]:
    results = enumerate(expected.results)
    lines = [f"{_numbered('expected', number)} = {_facts(result)}" for number, result in results]
    lines.append(f"print({', '.join(names)})")
    return [line for line in lines if len(line) < 20_000]


def _facts(facts: Facts) -> str:
    if isinstance(facts, TensorFacts) and facts.data is not None:
        return f"torch.tensor({_literal(facts.data)}, dtype={facts.data.dtype})"
    if isinstance(facts, ScalarFacts):
        return repr(facts.value)
    if isinstance(facts, ItemsFacts):
        return "(" + ", ".join(_facts(item) for item in facts.items) + ")"
    return "..."
