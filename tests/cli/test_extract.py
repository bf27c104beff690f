"""One version is taken out of a solution file with all it needs and nothing else, and it runs on its own."""

from __future__ import annotations

import pytest

from grader.cli.extract import renamed, version, version_names

SOURCE = '''\
"""Versions of f."""

from __future__ import annotations

import math
import os.path
from functools import partial, reduce

import torch as t

# How much, and why:
# twice is what was asked.
FACTOR: int = 2
LEFT, RIGHT = 1, 2
UNUSED = os.path.sep


# Doubles.
@partial
def _double(x):
    return x * FACTOR  # a comment


def _unused(x):
    return math.pi


def reference(x, again=True):
    """Says so.

    More.
    """
    if again:
        return reference(x, again=False)
    return _double(x).reference + RIGHT, "reference"


def right_short(x):
    return x


right_bound = partial(reference, again=False)


class right_class:
    """A class."""

    def __call__(self, x: t.Tensor):
        return t.neg(x)


def wrong_other(x):
    return reduce(max, x)
'''


def test_a_version_comes_with_what_it_needs_and_no_more() -> None:
    assert (
        version(SOURCE, "reference", "f").code
        == '''\
from __future__ import annotations
from functools import partial


# How much, and why:
# twice is what was asked.
FACTOR: int = 2
LEFT, RIGHT = 1, 2


# Doubles.
@partial
def _double(x):
    return x * FACTOR  # a comment


def f(x, again=True):
    """Says so.

    More.
    """
    if again:
        return f(x, again=False)
    return _double(x).reference + RIGHT, "reference"
'''
    )


def test_what_it_says_is_the_first_line_of_its_docstring() -> None:
    assert version(SOURCE, "reference").says == "Says so."
    assert version(SOURCE, "right_short").says == ""


def test_imports_under_another_name_are_kept() -> None:
    code = version(SOURCE, "right_class").code
    assert code.startswith("from __future__ import annotations\nimport torch as t\n\n\nclass right_class:")
    assert "math" not in code


def test_a_version_that_is_a_value_brings_what_it_is_made_of() -> None:
    code = version(SOURCE, "right_bound").code
    assert code.endswith("right_bound = partial(reference, again=False)\n")
    assert "def reference(" in code


def test_versions_are_listed_in_the_files_order() -> None:
    assert version_names(SOURCE, "right_") == ["right_short", "right_bound", "right_class"]


def test_a_version_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="right_gone"):
        version(SOURCE, "right_gone")


def test_renaming_leaves_attributes_strings_and_comments_alone() -> None:
    code = "def old(x):\n    return x.old + old(older, 'old')  # old\n"
    assert renamed(code, "old", "brand_new") == (
        "def brand_new(x):\n    return x.old + brand_new(older, 'old')  # old\n"
    )


def test_renaming_counts_columns_after_wide_characters() -> None:
    assert renamed("é = 'ü'; old = é\n", "old", "new") == "é = 'ü'; new = é\n"
