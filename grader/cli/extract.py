"""Takes one version out of a solution file as text: its code, what it needs from the same file, its imports.

Works on the source alone and runs nothing. Comments and layout are kept; only the version's name is changed
to the one a learner would write.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Version:
    """One version in a solution file: its name there, the first line of its docstring, its code as text."""

    name: str
    says: str
    code: str


def version(source: str, name: str, rename_to: str | None = None) -> Version:
    """The version called `name` with all it needs; KeyError when the file has none."""
    file = _File(source)
    if name not in file.statements:
        raise KeyError(name)
    code = file.take(name)
    if rename_to is not None:
        code = renamed(code, name, rename_to)
    return Version(name, _says(file.statements[name]), code)


def version_names(source: str, prefix: str) -> list[str]:
    """The names of the versions that begin with `prefix`, in the order of the file."""
    return [name for name in _File(source).statements if name.startswith(prefix)]


def renamed(code: str, old: str, new: str) -> str:
    """`code` with the name `old` changed to `new`; attributes, strings and comments are left alone."""
    lines = code.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    for before, token in reversed(list(zip([None, *tokens], tokens, strict=False))):
        attribute = before is not None and before.string == "."
        if token.type == tokenize.NAME and token.string == old and not attribute:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


class _File:
    """A parsed solution file: its imports and its top-level statements by the names they bind."""

    def __init__(self, source: str) -> None:
        self.lines = source.splitlines()
        self.tree = ast.parse(source)
        self.statements: dict[str, ast.stmt] = {
            name: node
            for node in self.tree.body
            if not isinstance(node, ast.Import | ast.ImportFrom)
            for name in _bound(node)
        }

    def take(self, name: str) -> str:
        """The code of `name` and of everything at top level that it needs, as a file of its own."""
        needed, used = self._closure(name)
        imports = [text for node in self.tree.body for text in _import_text(node, used)]
        blocks = ["\n".join(imports)] if imports else []
        values: list[str] = []
        for node in self.tree.body:
            if node not in needed:
                continue
            if isinstance(node, Defined):
                blocks += ["\n".join(values)] if values else []
                values = []
                blocks.append(self._text(node))
            else:
                values.append(self._text(node))
        blocks += ["\n".join(values)] if values else []
        return "\n\n\n".join(blocks) + "\n"

    def _closure(self, name: str) -> tuple[set[ast.stmt], set[str]]:
        needed: set[ast.stmt] = set()
        used: set[str] = set()
        waiting = [name]
        while waiting:
            node = self.statements.get(waiting.pop())
            if node is None or node in needed:
                continue
            needed.add(node)
            names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
            used |= names
            waiting += names
        return needed, used

    def _text(self, node: ast.stmt) -> str:
        first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
        while first > 1 and self.lines[first - 2].startswith("#"):
            first -= 1
        return "\n".join(self.lines[first - 1 : node.end_lineno])


def _bound(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, Defined):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [item.id for target in targets for item in ast.walk(target) if isinstance(item, ast.Name)]


def _import_text(node: ast.stmt, used: set[str]) -> list[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return []
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return [ast.unparse(node)]
    kept = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in used]
    if not kept:
        return []
    node = type(node)(**{**dict(ast.iter_fields(node)), "names": kept})
    return [ast.unparse(ast.fix_missing_locations(node))]


def _says(node: ast.stmt) -> str:
    if not isinstance(node, Defined):
        return ""
    return (ast.get_docstring(node) or "").split("\n")[0]
