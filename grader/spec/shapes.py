"""Symbolic sizes: shapes ("B S (H d)"), expressions over sizes ("K*G"), and drawing the sizes of a case.

Expressions are arithmetic only: they are read with `ast` and walked here, never compiled or run as Python.
Nothing here knows of tensors, and drawing takes its source of randomness as an argument.
"""

from __future__ import annotations

import ast
import math
import operator
import random
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grader.errors import ExitCode, Fault, MhaquizError
from grader.spec.suggest import did_you_mean

MAX_EXPRESSION = 200
MAX_BITS = 4096
MAX_SPREAD = 100_000


class NotationError(MhaquizError):
    """A shape, an expression or a size is not well formed. `column` counts from 1 within its text."""

    fault = Fault.PROBLEM
    exit_code = ExitCode.BROKEN_PROBLEM

    def __init__(self, what: str, *, text: str = "", column: int = 1) -> None:
        super().__init__(what, where=f'"{text}", column {column}' if text else "")
        self.text = text
        self.column = column


class ShapeError(NotationError):
    """A symbolic shape is not well formed or names an unknown size."""


class ExpressionError(NotationError):
    """An expression is not well formed, names an unknown size or has no value."""


class SizeError(NotationError):
    """A size of a case is neither a number, an expression, a range nor a list."""

    def __init__(self, what: str, *, name: str, text: str = "", column: int = 1) -> None:
        super().__init__(what, text=text, column=column)
        self.name = name


# --- shapes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A size's name or a literal number, and the column where it stands."""

    value: str | int
    column: int


@dataclass(frozen=True)
class Axis:
    """One axis: the product of its factors, the outermost first."""

    factors: tuple[Factor, ...]

    @property
    def label(self) -> str:
        """For display: `H*d`."""
        return "*".join(str(factor.value) for factor in self.factors)

    def __str__(self) -> str:
        inner = " ".join(str(factor.value) for factor in self.factors)
        return inner if len(self.factors) == 1 else f"({inner})"


@dataclass(frozen=True)
class Shape:
    """A symbolic shape. `str` prints it in the notation it was read from."""

    axes: tuple[Axis, ...]
    text: str

    def __str__(self) -> str:
        return " ".join(str(axis) for axis in self.axes)

    @property
    def labels(self) -> tuple[str, ...]:
        """One display name an axis: "B", "S", "H*d"."""
        return tuple(axis.label for axis in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes it uses, each once, in order."""
        return tuple(dict.fromkeys(use.name for use in self.uses))

    @property
    def uses(self) -> tuple[NameUse, ...]:
        """Every use of a size's name, with its column."""
        factors = (factor for axis in self.axes for factor in axis.factors)
        return tuple(NameUse(f.value, f.column) for f in factors if isinstance(f.value, str))

    def resolve(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape. Raises ShapeError for a size that `sizes` lacks."""
        return tuple(math.prod(self._size_of(factor, sizes) for factor in axis.factors) for axis in self.axes)

    def _size_of(self, factor: Factor, sizes: Mapping[str, int]) -> int:
        if isinstance(factor.value, int):
            return factor.value
        if factor.value not in sizes:
            raise ShapeError(unknown_size(factor.value, sizes), text=self.text, column=factor.column)
        return sizes[factor.value]


@dataclass(frozen=True)
class NameUse:
    """A size's name and the column (from 1) at which a text uses it."""

    name: str
    column: int


_SHAPE_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]{1,9})(?!\w)|(?P<mark>[()]))"
)


@lru_cache(maxsize=1024)
def parse_shape(text: str) -> Shape:
    """Read "B S (H d)": axes apart by spaces, products in parentheses; "" is the shape of a scalar.

    Raises ShapeError, with the column, for anything else.
    """
    axes: list[Axis] = []
    group: list[Factor] | None = None
    opened = 0
    for token, column in _shape_tokens(text):
        if token == "(":
            if group is not None:
                raise ShapeError("a group inside a group; write all factors in one", text=text, column=column)
            group, opened = [], column
        elif token == ")":
            if not group:
                what = "a group needs at least one factor" if group is not None else "`)` without `(`"
                raise ShapeError(what, text=text, column=column)
            axes.append(Axis(tuple(group)))
            group = None
        elif group is not None:
            group.append(Factor(token, column))
        else:
            axes.append(Axis((Factor(token, column),)))
    if group is not None:
        raise ShapeError("`(` is never closed", text=text, column=opened)
    return Shape(tuple(axes), text)


def _shape_tokens(text: str) -> list[tuple[str | int, int]]:
    tokens: list[tuple[str | int, int]] = []
    end, position = len(text.rstrip()), 0
    while position < end:
        match = _SHAPE_TOKEN.match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            hint = "a shape holds names, whole numbers, spaces and parentheses"
            raise ShapeError(f"unexpected `{text[at]}`: {hint}", text=text, column=at + 1)
        kind = str(match.lastgroup)
        tokens.append((int(match[kind]) if kind == "number" else match[kind], match.start(kind) + 1))
        position = match.end()
    return tokens


def unknown_size(name: str, known: Collection[str]) -> str:
    """The sentence for a name that is no size."""
    return f"unknown size `{name}`" + did_you_mean(name, known)


# --- expressions ------------------------------------------------------------------------------------------

Operator = Callable[[Any, Any], Any]

_BINARY: dict[type[ast.operator], Operator] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Operator] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ALLOWED = "names, numbers, + - * // % **, comparisons, parentheses, True, False and None"


@dataclass(frozen=True)
class Expression:
    """An expression that was read and found to hold nothing but arithmetic."""

    text: str
    body: ast.expr

    @property
    def uses(self) -> tuple[NameUse, ...]:
        """Every use of a name, with its column, in order."""
        found = [node for node in ast.walk(self.body) if isinstance(node, ast.Name)]
        uses = (NameUse(node.id, self.column(node)) for node in found)
        return tuple(sorted(uses, key=lambda use: use.column))

    def column(self, node: ast.expr) -> int:
        """The column of a node, in characters from 1 (`ast` counts bytes of the stripped text)."""
        stripped = self.text.strip()
        before = stripped.encode()[: node.col_offset].decode(errors="ignore")
        return len(self.text) - len(self.text.lstrip()) + len(before) + 1


def evaluate(expression: str | int | float | bool | None, names: Mapping[str, Any]) -> Any:
    """The value of an expression over `names`; anything but text is its own value.

    Raises ExpressionError for what is not arithmetic, for unknown names and where there is no value.
    """
    if not isinstance(expression, str):
        return expression
    parsed = parse_expression(expression)
    return _Evaluator(parsed, names).value(parsed.body)


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Expression:
    """Read an expression. Raises ExpressionError, with the column, for anything but arithmetic."""
    if not text.strip():
        raise ExpressionError("the expression is empty", text=text)
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(f"the expression is longer than {MAX_EXPRESSION} characters")
    expression = Expression(text, _parse_body(text))
    _refuse_all_but_arithmetic(expression, expression.body)
    return expression


def _parse_body(text: str) -> ast.expr:
    offset = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own remarks on odd literals
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        column = min((error.offset or 1) + offset, len(text) + 1)
        raise ExpressionError("not an expression", text=text, column=max(column, 1)) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("not an expression", text=text) from None


def _refuse_all_but_arithmetic(expression: Expression, node: ast.expr) -> None:
    match node:
        case ast.Name():
            return
        case ast.Constant(value=bool() | int() | float() | None):
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            operands = [left, right]
        case ast.BinOp(op=ast.Div()):
            raise _refused(expression, node, "`/` is not allowed, sizes are whole numbers: use `//`")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            operands = [operand]
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _COMPARE for op in ops):
            operands = [left, *rest]
        case _:
            raise _refused(expression, node, f"only {_ALLOWED} are allowed")
    for operand in operands:
        _refuse_all_but_arithmetic(expression, operand)


def _refused(expression: Expression, node: ast.expr, what: str) -> ExpressionError:
    return ExpressionError(what, text=expression.text, column=expression.column(node))


@dataclass(frozen=True)
class _Evaluator:
    expression: Expression
    names: Mapping[str, Any]

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.UnaryOp(operand=operand):
                return self._apply(node, lambda value, _: -value, self.value(operand), 0)
            case ast.BinOp(left=left, op=op, right=right):
                return self._apply(node, _BINARY[type(op)], self.value(left), self.value(right))
            case ast.Compare():
                return self._compare(node)
        raise AssertionError("parse_expression lets no other node through")

    def _name(self, node: ast.expr, name: str) -> Any:
        if name not in self.names:
            raise _refused(self.expression, node, unknown_size(name, self.names))
        return self.names[name]

    def _compare(self, node: ast.Compare) -> bool:
        left, holds = self.value(node.left), True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            holds = holds and bool(self._apply(node, _COMPARE[type(op)], left, right))
            left = right
        return holds

    def _apply(self, node: ast.expr, operate: Operator, left: Any, right: Any) -> Any:
        if operate is operator.pow:
            self._bound_power(node, left, right)
        try:
            result = operate(left, right)
        except ZeroDivisionError:
            raise _refused(self.expression, node, "division by zero") from None
        except OverflowError:
            raise _refused(self.expression, node, "the result is too large") from None
        except TypeError:
            raise _refused(self.expression, node, f"cannot combine {left!r} and {right!r}") from None
        if isinstance(result, complex):
            raise _refused(self.expression, node, "a root of a negative number has no value here")
        return result

    def _bound_power(self, node: ast.expr, base: Any, exponent: Any) -> None:
        """Refuse a power that would take long to compute before computing it."""
        whole = isinstance(base, int) and isinstance(exponent, int)
        if whole and base.bit_length() * abs(exponent) > MAX_BITS:
            raise _refused(self.expression, node, "the result is too large")


# --- sizes of a case --------------------------------------------------------------------------------------

SizeSpec = int | str | Sequence[int]

_RANGE = re.compile(r"\s*([0-9]{1,9})\s*\.\.\s*([0-9]{1,9})\s*")


@dataclass(frozen=True)
class Choice:
    """A size to draw from these candidates."""

    candidates: Sequence[int]


def read_size(name: str, spec: SizeSpec) -> int | Expression | Choice:
    """What a size's text says: a number, an expression of earlier sizes, or candidates to draw from.

    Raises SizeError or ExpressionError.
    """
    if isinstance(spec, bool):
        raise SizeError(f"`{name}` must be a whole number, found {str(spec).lower()}", name=name)
    if isinstance(spec, int):
        return _whole(name, spec)
    if not isinstance(spec, str):
        if not spec:
            raise SizeError(f"`{name}` has an empty list to draw from", name=name)
        return Choice(tuple(_whole(name, number) for number in spec))
    return _read_range(name, spec) if ".." in spec else parse_expression(spec)


def _read_range(name: str, text: str) -> Choice:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise SizeError(f"`{name}`: a range is written `2..5`, found `{text}`", name=name, text=text)
    low, high = int(match[1]), int(match[2])
    if low > high:
        raise SizeError(
            f"`{name}`: the range {text} is empty, its end is below its start", name=name, text=text
        )
    if high - low > MAX_SPREAD:
        raise SizeError(f"`{name}`: the range {text} is wider than {MAX_SPREAD}", name=name, text=text)
    return Choice(range(low, high + 1))


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SizeError(f"`{name}` must be a whole number, found {value!r}", name=name)
    if value < 0:
        raise SizeError(f"`{name}` is {value}, a size cannot be negative", name=name)
    return value


def resolve_sizes(spec: Mapping[str, SizeSpec], draw: random.Random) -> dict[str, int]:
    """The sizes of one trial, in the order given; the same for the same state of `draw`.

    Drawn sizes come out different from each other and from the fixed ones where the candidates allow it
    (else different from each other, else as different as can be): equal sizes hide swapped axes.
    """
    read = {name: read_size(name, value) for name, value in spec.items()}
    fixed = {name: value for name, value in read.items() if isinstance(value, int)}
    choices = {name: value for name, value in read.items() if isinstance(value, Choice)}
    drawn = _draw_apart(choices, set(fixed.values()), draw)
    sizes: dict[str, int] = {}
    for name, value in read.items():
        if isinstance(value, Expression):
            sizes[name] = _whole(name, evaluate(value.text, sizes))
        else:
            sizes[name] = value if isinstance(value, int) else drawn[name]
    return sizes


def _draw_apart(choices: Mapping[str, Choice], taken: set[int], draw: random.Random) -> dict[str, int]:
    shuffled = {
        name: draw.sample(choice.candidates, len(choice.candidates)) for name, choice in choices.items()
    }
    strict = {name: [n for n in numbers if n not in taken] for name, numbers in shuffled.items()}
    apart = _match(strict)
    if len(apart) < len(choices):
        apart = _match(shuffled)
    return {name: apart.get(name, numbers[0]) for name, numbers in shuffled.items()}


def _match(candidates: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """A largest choice of pairwise different numbers (augmenting paths), following each list's order."""
    owner: dict[int, str] = {}

    def place(name: str, seen: set[int]) -> bool:
        for number in candidates[name]:
            if number in seen:
                continue
            seen.add(number)
            if number not in owner or place(owner[number], seen):
                owner[number] = name
                return True
        return False

    for name in candidates:
        place(name, set())
    return {name: number for number, name in owner.items()}
