"""A wrong submission is named by the known mistake that behaves like it, and by no other."""

# ruff: noqa: E501 - a row of a table and a message are one line

from __future__ import annotations

from typing import Any

import pytest

from grader.judge import Task
from tests.conftest import Judge
from tests.tiny import case, code, mistake, tiny

SPLIT = """
def checked(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")


def reference(x, num_heads):
    checked(x, num_heads)
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def wrong_viewed_straight(x, num_heads):
    checked(x, num_heads)
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def wrong_made_contiguous(x, num_heads):
    checked(x, num_heads)
    return reference(x, num_heads).contiguous()


def wrong_made_contiguous__stack(x, num_heads):
    checked(x, num_heads)
    return torch.stack(x.chunk(num_heads, -1), 1)


def wrong_no_value_error(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1)[:, :, :, :].transpose(1, 2) if x.shape[-1] % num_heads == 0 else x


def wrong_detached(x, num_heads):
    checked(x, num_heads)
    return reference(x.detach(), num_heads)
"""
IDS = ["viewed-straight", "made-contiguous", "no-value-error", "detached"]


def split_heads() -> Task:
    return tiny(
        SPLIT,
        inputs={"x": {"shape": "B S (H d)"}, "num_heads": "H"},
        returns="B H S d",
        cases=[
            case(sizes={"B": 2, "S": 5, "H": 4, "d": 3}),
            case("fused", sizes={"B": 2, "S": 3, "H": 2, "d": 5}, layouts={"x": "fused"}),
        ],
        errors=[{"name": "odd", "inputs": {"x": {"shape": "2 3 10"}, "num_heads": 4}}],
        checks=[{"name": "no_copy", "options": {"of": "x"}}, {"name": "strides"}, {"name": "gradient"}, {"name": "raises"}],
        mistakes=[mistake(name) for name in IDS],
    )  # fmt: skip


GUARD = "def answer(x, num_heads):\n    if x.shape[-1] % num_heads:\n        raise ValueError\n    B, S, D = x.shape\n    "
BARE = "def answer(x, num_heads):\n    B, S, D = x.shape\n    "
RIGHT = "x.view(B, S, num_heads, -1).transpose(1, 2)"
STRAIGHT = "x.contiguous().view(B, num_heads, S, D // num_heads)"

SUBMISSIONS = {
    "the mistake itself": (GUARD + f"return {STRAIGHT}", ["viewed-straight"]),
    "in another spelling": (GUARD + "return x.flatten(1).unflatten(1, (num_heads, S, D // num_heads))", ["viewed-straight"]),
    "a copy": (GUARD + f"return {RIGHT}.clone(memory_format=torch.contiguous_format)", ["made-contiguous"]),
    "a copy by another road": (GUARD + "return torch.cat([h.unsqueeze(1) for h in x.chunk(num_heads, -1)], 1)", ["made-contiguous"]),
    "no exception": (BARE + f"return {RIGHT} if D % num_heads == 0 else x", ["no-value-error"]),
    "nothing instead of an exception": (BARE + f"return {RIGHT} if D % num_heads == 0 else None", []),
    "no gradient": (GUARD + "return x.detach().view(B, S, num_heads, -1).transpose(1, 2)", ["detached"]),
    "two at once": (
        BARE + f"return {STRAIGHT} if D % num_heads == 0 else x", ["viewed-straight", "no-value-error"],
    ),
    "the same numbers in other memory": (
        GUARD + f"return {STRAIGHT}.clone().transpose(0, 1).contiguous().transpose(0, 1)", ["viewed-straight"],
    ),
    "something else": (GUARD + "return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)", []),
    "something else, copied": (GUARD + f"return {RIGHT}.flip(1)", ["made-contiguous"]),
    "almost, copied": (
        GUARD + f"out = {STRAIGHT}.clone()\n    out[-1, -1, -1, -1] += 1\n    return out", ["made-contiguous"],
    ),
    "another exception": (BARE + "assert D % num_heads == 0\n    return " + RIGHT, []),
}  # fmt: skip


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_the_name(name: str, judge: Judge) -> None:
    source, expected = SUBMISSIONS[name]
    report = judge(split_heads(), code(source))
    assert report.verdict == "failed"
    assert [m.id for m in report.mistakes] == expected


@pytest.mark.parametrize(
    "version", ["viewed_straight", "made_contiguous", "made_contiguous__stack", "no_value_error", "detached"]
)
def test_every_known_mistake_is_named_as_itself(version: str, judge: Judge) -> None:
    task = split_heads()
    report = judge(task, task.versions.submission_source(f"wrong_{version}").decode())
    assert [m.id for m in report.mistakes] == [version.split("__")[0].replace("_", "-")]


def test_a_right_answer_is_named_nothing(judge: Judge) -> None:
    report = judge(split_heads(), code(GUARD + f"return {RIGHT}"))
    assert (report.verdict, report.mistakes) == ("passed", ())


def test_the_name_comes_with_words(judge: Judge) -> None:
    (named,) = judge(split_heads(), code(SUBMISSIONS["a copy"][0])).mistakes
    assert (named.title, named.explanation, named.fix) == (
        "made-contiguous", "You did made-contiguous. It matters.", "Undo it.",
    )  # fmt: skip


REAL = """
def reference(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


def wrong_not_scaled(q, k):
    return q @ k.mT


def wrong_in_16_bit(q, k):
    return reference(q.bfloat16(), k.bfloat16()).to(q.dtype) if q.dtype == torch.float32 else reference(q, k)


def wrong_scaled_by_keys(q, k):
    return q @ k.mT / k.shape[-2] ** 0.5
"""


def scores(**fields: Any) -> Task:
    return tiny(
        REAL,
        inputs={"q": {"shape": "B Sq d"}, "k": {"shape": "B Sk d"}},
        returns="B Sq Sk",
        numbers="real",
        values="normal",
        cases=[case(sizes={"B": 2, "Sq": 3, "Sk": 7, "d": 5}), *fields.pop("more", [])],
        mistakes=[mistake(name) for name in ("not-scaled", "in-16-bit", "scaled-by-keys")],
        **fields,
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("torch.einsum('bid,bjd->bij', q, k)", ["not-scaled"]),
        ("q @ k.mT * k.shape[-2] ** -0.5", ["scaled-by-keys"]),
        ("(q.bfloat16() @ k.bfloat16().mT / q.shape[-1] ** 0.5).to(q.dtype) if q.dtype == torch.float32 else q @ k.mT / q.shape[-1] ** 0.5", ["in-16-bit"]),
        ("q @ k.mT / q.shape[-1]", []),
    ],
)  # fmt: skip
def test_real_numbers_are_compared_with_the_mistakes_own(
    body: str, expected: list[str], judge: Judge
) -> None:
    report = judge(scores(), code(f"def answer(q, k):\n    return {body}"))
    assert [m.id for m in report.mistakes] == expected


def test_siblings_that_no_case_tells_apart_are_both_named(judge: Judge) -> None:
    """With as many keys as features two mistakes are one; the gate refuses such a problem."""
    task = tiny(
        REAL, inputs={"q": {"shape": "B S d"}, "k": {"shape": "B S d"}}, returns="B S S", numbers="real",
        values="normal", cases=[case(sizes={"B": 2, "S": 5, "d": 5})],
        mistakes=[mistake("not-scaled"), mistake("also-not-scaled")],
    )  # fmt: skip
    task.versions.source = REAL + "\n\ndef wrong_also_not_scaled(q, k):\n    return q.matmul(k.mT)\n"
    task.versions.source = "import torch\n" + task.versions.source
    report = judge(task, code("def answer(q, k):\n    return q @ k.mT"))
    assert [m.id for m in report.mistakes] == ["not-scaled", "also-not-scaled"]
