"""Frames: what is sent arrives, whatever the pieces it comes in; what is no frame is refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.guest.wire import MAX_BUFFERS, MAX_HEADER, Assembler, Frame, Malformed, encode, receive

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
_HEADERS = st.dictionaries(st.text(max_size=8), _VALUES, max_size=4)
_BUFFERS = st.lists(st.binary(max_size=200), max_size=4)
_LIMIT = 1 << 20
# A machine that is busy with other work must not fail a test.
_QUICK = settings(deadline=None, max_examples=60)


class _Stream:
    """A source that hands out what it has in pieces of a given size."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._data, self._piece = data, piece

    def recv(self, size: int, /) -> bytes:
        taken, self._data = self._data[: min(size, self._piece)], self._data[min(size, self._piece) :]
        return taken


def _assembler(data: bytes, limit: int = _LIMIT) -> Assembler:
    assembler = Assembler(limit)
    assembler.feed(data)
    return assembler


@_QUICK
@given(st.lists(st.tuples(_HEADERS, _BUFFERS), max_size=3), st.integers(1, 300))
def test_round_trip_in_pieces(messages: list[tuple[dict[str, Any], list[bytes]]], piece: int) -> None:
    """Any headers and buffers, one after the other, cut anywhere."""
    stream = _Stream(b"".join(encode(header, buffers) for header, buffers in messages), piece)
    assembler = Assembler(_LIMIT)
    for header, buffers in messages:
        frame = receive(stream, assembler)
        assert frame is not None
        assert (frame.header, [bytes(b) for b in frame.buffers]) == (header, buffers)
    assert receive(stream, assembler) is None


@_QUICK
@given(_HEADERS, _BUFFERS, st.data())
def test_truncated_frame_is_not_yet_one(
    header: dict[str, Any], buffers: list[bytes], data: st.DataObject
) -> None:
    """A frame that lacks its end is waited for; a stream that ends within it gives none."""
    whole = encode(header, buffers)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert _assembler(part).next() is None
    assert receive(_Stream(part, 7), Assembler(_LIMIT)) is None


@_QUICK
@given(st.binary(max_size=400))
def test_garbage_is_refused_or_waited_for(garbage: bytes) -> None:
    """Nothing but Malformed ever comes of bytes that nobody encoded."""
    try:
        frame = _assembler(garbage).next()
    except Malformed:
        return
    assert frame is None or isinstance(frame, Frame)


def test_what_follows_a_frame_is_kept() -> None:
    """Two frames in one piece come out one by one."""
    assembler = _assembler(encode({"n": 1}) + encode({"n": 2}, [b"x"])[:-1])
    assert assembler.next() == Frame({"n": 1})
    assert assembler.next() is None
    assembler.feed(b"x")
    assert assembler.next() == Frame({"n": 2}, (bytearray(b"x"),))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack(">II", MAX_HEADER + 1, 0), "a frame's header is too large"),
        (struct.pack(">II", 2, MAX_BUFFERS + 1), "a frame's header is too large"),
        (struct.pack(">IIQ", 2, 1, _LIMIT) + b"{}", "a frame is too large"),
        (struct.pack(">IIQQ", 2, 2, 2**63, 2**63) + b"{}", "a frame is too large"),
        (struct.pack(">II", 2, 0) + b"{]", "a frame's header is no JSON"),
        (struct.pack(">II", 1, 0) + b"\xff", "a frame's header is no JSON"),
        (struct.pack(">II", 0, 0), "a frame's header is no JSON"),
        (struct.pack(">II", 2, 0) + b"[]", "a frame's header is no object"),
        (struct.pack(">II", 4, 0) + b"null", "a frame's header is no object"),
    ],
)
def test_forged_frames_are_refused(data: bytes, message: str) -> None:
    """Sizes beyond the limits are refused before anything of that size is waited for."""
    with pytest.raises(Malformed, match=f"^{message}$"):
        _assembler(data).next()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"n": ' + "9" * 5000 + "}"])
def test_hostile_json_is_refused(text: str) -> None:
    """Nesting beyond the parser's depth and numbers beyond its length."""
    with pytest.raises(Malformed, match="no JSON"):
        _assembler(struct.pack(">II", len(text), 0) + text.encode()).next()


def test_patched_json_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions were taken before a submission could replace them."""
    monkeypatch.setattr(json, "dumps", lambda *_, **__: "{}")
    monkeypatch.setattr(json, "loads", lambda *_, **__: {})
    assert _assembler(encode({"n": 1})).next() == Frame({"n": 1})
