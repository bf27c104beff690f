"""Frames between host and runner: a small JSON header and raw buffers. Never pickle.

A frame is two big-endian 32-bit lengths (header, number of buffers), one 64-bit length per buffer, the
header, the buffers. Both ends refuse frames over a size they choose.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

_HEAD = struct.Struct(">II")
_LENGTH = struct.Struct(">Q")
MAX_HEADER = 16 * 1024 * 1024
MAX_BUFFERS = 4096
# Taken before a submission loads: whatever it puts in the place of json.dumps is not used here.
_to_text = json.JSONEncoder(separators=(",", ":")).encode
_from_text = json.JSONDecoder().decode


class Malformed(Exception):
    """The bytes on the wire are no frame."""


@dataclass(frozen=True)
class Frame:
    """One message: a JSON object and raw buffers."""

    header: dict[str, Any]
    buffers: tuple[bytearray, ...] = ()


@dataclass(frozen=True)
class Request:
    """One request to a runner: its header and its raw buffers."""

    header: dict[str, Any]
    buffers: Sequence[bytes | bytearray] = ()


class Readable(Protocol):
    """What `receive` needs of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes, empty at the end."""


def encode(header: dict[str, Any], buffers: Sequence[bytes | bytearray] = ()) -> bytes:
    """The bytes of one frame."""
    text = _to_text(header).encode()
    lengths = b"".join(_LENGTH.pack(len(buffer)) for buffer in buffers)
    return b"".join([_HEAD.pack(len(text), len(buffers)), lengths, text, *buffers])


class Assembler:
    """Turns a stream of bytes into frames."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Adds received bytes."""
        self._data += data

    def next(self) -> Frame | None:
        """The next whole frame, or None while it is incomplete. Raises Malformed."""
        if len(self._data) < _HEAD.size:
            return None
        header_size, count = _HEAD.unpack_from(self._data)
        if header_size > MAX_HEADER or count > MAX_BUFFERS:
            raise Malformed("a frame's header is too large")
        start = _HEAD.size + count * _LENGTH.size
        if len(self._data) < start:
            return None
        lengths = [_LENGTH.unpack_from(self._data, _HEAD.size + i * _LENGTH.size)[0] for i in range(count)]
        total = start + header_size + sum(lengths)
        if total > self._limit:
            raise Malformed("a frame is too large")
        if len(self._data) < total:
            return None
        return self._cut(start, header_size, lengths, total)

    def _cut(self, start: int, header_size: int, lengths: list[int], total: int) -> Frame:
        text = bytes(self._data[start : start + header_size])
        buffers, at = [], start + header_size
        for length in lengths:
            buffers.append(self._data[at : at + length])
            at += length
        del self._data[:total]
        try:
            header = _from_text(text.decode())
        except (ValueError, RecursionError) as error:
            raise Malformed("a frame's header is no JSON") from error
        if not isinstance(header, dict):
            raise Malformed("a frame's header is no object")
        return Frame(header, tuple(buffers))


def receive(source: Readable, assembler: Assembler) -> Frame | None:
    """Blocks for the next frame; None when the other end has gone."""
    while True:
        frame = assembler.next()
        if frame is not None:
            return frame
        data = source.recv(1 << 20)
        if not data:
            return None
        assembler.feed(data)
