"""YAML text -> plain data, with the place of every key and value.

Reads the YAML 1.2 core schema: `1e-5` is a number, `no`, `on`, `y` and `N` are text, and there are no dates.
Refuses what silently surprises (duplicate keys, tags, merge keys, second documents) and what is hostile
(huge files, deep nesting, aliases that multiply). Every refusal is a Mistake; nothing else is raised.
It builds from parser events rather than with `yaml.compose`, whose recursion has no limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from grader.errors import Mistake, ProblemFileError

MAX_BYTES = 1_000_000
MAX_VALUES = 20_000
MAX_DEPTH = 40

Steps = tuple[str | int, ...]

_Parser: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class Mark:
    """Where a key or value begins, from 1.

    `inset` is how many columns later its text begins when it stands on one line as written, else None.
    `is_block` is true for text whose lines follow as written (`|`).
    """

    line: int
    column: int
    inset: int | None = None
    is_block: bool = False


@dataclass(frozen=True)
class Document:
    """The data of a file and where each part of it stands."""

    file: str
    text: str
    data: Any
    values: Mapping[Steps, Mark]
    keys: Mapping[Steps, Mark]
    mistakes: tuple[Mistake, ...]

    def at(self, steps: Steps) -> Mark:
        """The place of the value at `steps`, or of its nearest ancestor."""
        while steps and steps not in self.values:
            steps = steps[:-1]
        return self.values.get(steps, Mark(1, 1))

    def mistake(self, steps: Steps, message: str) -> Mistake:
        """A mistake of the value at `steps`."""
        return self._mistake(self.at(steps), message)

    def key_mistake(self, steps: Steps, message: str) -> Mistake:
        """A mistake of the key at `steps`."""
        return self._mistake(self.keys.get(steps, self.at(steps)), message)

    def text_mistake(self, steps: Steps, column: int, message: str) -> Mistake:
        """A mistake at a column (from 1) of the text at `steps`, where its lines are as written."""
        mark = self.at(steps)
        shift = mark.inset + column - 1 if mark.inset is not None else 0
        return self._mistake(replace(mark, column=mark.column + shift), message)

    def block_mistake(self, steps: Steps, line: int, column: int, message: str) -> Mistake:
        """A mistake at a line and column (from 1) of the text block (`|`) at `steps`."""
        mark = self.at(steps)
        lines = self.text.splitlines()
        if not mark.is_block or mark.line + line > len(lines):
            return self._mistake(mark, message)
        first = next((text for text in lines[mark.line :] if text.strip()), "")
        indent = len(first) - len(first.lstrip())
        return self._mistake(Mark(mark.line + line, indent + column), message)

    def _mistake(self, mark: Mark, message: str) -> Mistake:
        return Mistake(self.file, mark.line, mark.column, message)


class _Refused(Exception):
    """Reading cannot go on."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(message)
        self.mark = mark
        self.message = message


# --- from a file to text ----------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """The text of a problem file. Raises ProblemFileError for what is no readable UTF-8 text."""
    try:
        return _read_text(path)
    except _Refused as refused:
        raise ProblemFileError([_as_mistake(str(path), refused)]) from None


def _read_text(path: Path) -> str:
    content = _read_bytes(path)
    if content.startswith(b"\xef\xbb\xbf"):
        raise _Refused(Mark(1, 1), "the file begins with a byte order mark: save it as UTF-8 without one")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        mark = _mark_of(content[: error.start].decode())
        message = (
            f"not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}; save the file as UTF-8"
        )
        raise _Refused(mark, message) from None
    if not text.strip():
        raise _Refused(Mark(1, 1), "the file is empty: `mhaquiz new ID` writes one to start from")
    return text


def _read_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise _Refused(Mark(1, 1), "this is a directory, expected a problem file (.yaml)")
        size = path.stat().st_size
        if size > MAX_BYTES:
            limit = f"a problem file may have at most {MAX_BYTES / 1e6:.0f} MB"
            raise _Refused(Mark(1, 1), f"the file has {size / 1e6:.1f} MB, {limit}")
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _Refused(Mark(1, 1), f"cannot read the file: {reason}") from None
    except ValueError:
        raise _Refused(Mark(1, 1), "cannot read the file: its name is not a file name") from None


# --- from text to a document ------------------------------------------------------------------------------


def parse(text: str, file: str, parser: Any = _Parser) -> Document:
    """Read YAML text. Slips that leave the rest readable are in `mistakes`; others raise ProblemFileError.

    `parser` is a loader class of PyYAML's: the C one where present, else the slower Python one.
    """
    composer = _Composer(file)
    try:
        root = composer.document(_events(text, parser))
    except _Refused as refused:
        raise ProblemFileError([*composer.mistakes, _as_mistake(file, refused)]) from None
    builder = _Builder()
    data = builder.build(root, ())
    return Document(file, text, data, builder.values, builder.keys, tuple(composer.mistakes))


def _as_mistake(file: str, refused: _Refused) -> Mistake:
    return Mistake(file, refused.mark.line, refused.mark.column, refused.message)


_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def _events(text: str, parser: Any) -> Iterator[Any]:
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        message = f"the character U+{ord(bad[0]):04X} cannot be shown and is not allowed in YAML"
        raise _Refused(_mark_of(text[: bad.start()]), message)
    try:
        yield from yaml.parse(text, Loader=parser)
    except yaml.MarkedYAMLError as error:
        raise _Refused(*_worded(error, text)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise _Refused(Mark(1, 1), f"not valid YAML: {error}") from None


def _mark_of(before: str) -> Mark:
    return Mark(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _worded(error: yaml.MarkedYAMLError, text: str) -> tuple[Mark, str]:
    lines = text.split("\n")
    mark = _mark(error.problem_mark or error.context_mark)
    if mark.line > len(lines):  # the C parser counts one line past a file without a last line break
        mark = Mark(len(lines), len(lines[-1]) + 1)
    line = lines[mark.line - 1]
    character = line[mark.column - 1 : mark.column]
    problem = str(error.problem or error)
    if character == "\t" or problem.startswith("found a tab"):
        return mark, "a tab is used for indentation: YAML allows only spaces there"
    if problem.startswith("mapping values are not allowed"):
        return mark, "unexpected `:` here: put text that holds a colon in quotes, and line keys up"
    if "nesting depth" in problem:  # the parser's own limit, reached while it looked ahead
        return mark, f"nested more than {MAX_DEPTH} levels deep"
    if "cannot start any token" in problem:
        return mark, f"text cannot begin with `{character}`: put it in quotes"
    return mark, f"not valid YAML: {problem}{_context(error)}"


def _context(error: yaml.MarkedYAMLError) -> str:
    if error.context is None or error.context_mark is None:
        return ""
    return f" ({error.context} that begins at line {error.context_mark.line + 1})"


def _mark(mark: Any) -> Mark:
    return Mark(mark.line + 1, mark.column + 1) if mark is not None else Mark(1, 1)


@dataclass(frozen=True)
class _Node:
    """A value as written. `size` and `depth` count it with aliases followed."""

    mark: Mark
    content: Any
    size: int = 1
    depth: int = 1


@dataclass(frozen=True)
class _Key:
    text: str | int
    mark: Mark


@dataclass
class _Composer:
    """Builds one document from parser events, within the limits."""

    file: str
    mistakes: list[Mistake] = field(default_factory=list)
    anchors: dict[str, _Node | None] = field(default_factory=dict)
    events: Iterator[Any] = field(default_factory=lambda: iter(()))

    def document(self, events: Iterator[Any]) -> _Node:
        """The first document; a second one is a mistake."""
        self.events = events
        next(events)  # the start of the stream
        start = next(events)
        if isinstance(start, yaml.StreamEndEvent):
            raise _Refused(
                Mark(1, 1), "the file holds only comments: `mhaquiz new ID` writes one to start from"
            )
        root = self.node(next(events), 1)
        next(events)  # the end of the document
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            self.slip(_mark(after.start_mark), "a second document begins here: one file holds one problem")
        return root

    def slip(self, mark: Mark, message: str) -> None:
        """Note a mistake that leaves the rest readable."""
        self.mistakes.append(Mistake(self.file, mark.line, mark.column, message))

    def node(self, event: Any, depth: int) -> _Node:
        """The value that begins with `event`."""
        mark = _mark(event.start_mark)
        if depth > MAX_DEPTH:
            raise _Refused(mark, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, mark)
        if event.tag is not None:
            self.slip(mark, f"tags are not used in problem files, found `{event.tag}`")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self.limited(self.value(event, mark, depth))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def value(self, event: Any, mark: Mark, depth: int) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            written = replace(mark, inset=_inset(event), is_block=event.style == "|")
            return _Node(written, self.scalar(event, mark))
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(mark, depth)
        return self.mapping(mark, depth)

    def limited(self, node: _Node) -> _Node:
        """`node`, unless it has grown past what an honest file needs."""
        if node.size > MAX_VALUES:
            raise _Refused(node.mark, f"more than {MAX_VALUES} values with aliases followed")
        if node.depth > MAX_DEPTH:
            raise _Refused(node.mark, f"nested more than {MAX_DEPTH} levels deep with aliases followed")
        return node

    def alias(self, event: Any, mark: Mark) -> _Node:
        if event.anchor not in self.anchors:
            raise _Refused(mark, f"the alias `*{event.anchor}` names no anchor before it")
        node = self.anchors[event.anchor]
        if node is None:
            raise _Refused(mark, f"the alias `*{event.anchor}` lies inside what it stands for")
        return replace(node, mark=mark)

    def scalar(self, event: Any, mark: Mark) -> Any:
        if not event.implicit[0]:
            return event.value
        try:
            return core_scalar(event.value)
        except (ValueError, OverflowError):
            self.slip(mark, f"a number of {len(event.value)} characters is too long")
            return 0

    def sequence(self, mark: Mark, depth: int) -> _Node:
        items = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, depth + 1))
        return _collection(mark, items, items)

    def mapping(self, mark: Mark, depth: int) -> _Node:
        members: dict[_Key, _Node] = {}
        first: dict[str | int, _Key] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event, depth)
            value = self.node(next(self.events), depth + 1)
            if key is None:
                continue
            if key.text in first:
                place = first[key.text].mark
                where = f"line {place.line}, column {place.column}"
                self.slip(key.mark, f"the key `{key.text}` is given twice, first at {where}")
                continue
            first[key.text] = key
            members[key] = value
        return _collection(mark, members, list(members.values()))

    def key(self, event: Any, depth: int) -> _Key | None:
        mark = _mark(event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            self.node(event, depth + 1)
            self.slip(mark, "a key must be plain text: put text that begins with { or [ in quotes")
            return None
        if event.anchor is not None or event.tag is not None:
            self.slip(mark, "a key cannot have an anchor or a tag")
        if event.value == "<<" and event.implicit[0]:
            self.slip(mark, "merge keys (`<<`) are not supported: write the keys out")
            return None
        number = event.implicit[0] and re.fullmatch(r"[-+]?[0-9]{1,9}", event.value)
        return _Key(int(event.value) if number else event.value, mark)


def _collection(mark: Mark, content: Any, children: list[_Node]) -> _Node:
    size = 1 + sum(child.size for child in children)
    depth = 1 + max((child.depth for child in children), default=0)
    return _Node(mark, content, size, depth)


def _inset(event: Any) -> int | None:
    """0 for plain one-line text, 1 for quoted text without escapes, None where columns do not carry over."""
    if event.start_mark.line != event.end_mark.line or event.style in ("|", ">"):
        return None
    quotes = 1 if event.style in ("'", '"') else 0
    written = event.end_mark.column - event.start_mark.column - 2 * quotes
    return quotes if written == len(event.value) else None


@dataclass
class _Builder:
    """Plain data from nodes, noting where each part stands."""

    values: dict[Steps, Mark] = field(default_factory=dict)
    keys: dict[Steps, Mark] = field(default_factory=dict)

    def build(self, node: _Node, steps: Steps) -> Any:
        self.values[steps] = node.mark
        if isinstance(node.content, list):
            return [self.build(item, (*steps, index)) for index, item in enumerate(node.content)]
        if isinstance(node.content, dict):
            return {key.text: self.member(key, value, steps) for key, value in node.content.items()}
        return node.content

    def member(self, key: _Key, value: _Node, steps: Steps) -> Any:
        self.keys[(*steps, key.text)] = key.mark
        return self.build(value, (*steps, key.text))


# --- the core schema --------------------------------------------------------------------------------------

_WORDS: dict[str, Any] = {"": None, "~": None}
for _word, _value in (("null", None), ("true", True), ("false", False)):
    _WORDS |= {_word: _value, _word.capitalize(): _value, _word.upper(): _value}

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")


def core_scalar(text: str) -> str | int | float | bool | None:
    """What unquoted text means in the YAML 1.2 core schema."""
    if text in _WORDS:
        value: bool | None = _WORDS[text]
        return value
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", "", 1))
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text
