r"""Lines of a file, or of a part of it, in blocks.

A part has the lines that begin in it, so that parts side by side have every line once. Parts are cut at `\n` only;
within a part `\r` and `\r\n` end lines, too.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import BinaryIO

BLOCK_BYTES = 256 * 1024


def line_blocks(
    stream: BinaryIO, start: int, end: int | None, offset: int | None, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[bytes, int]]:
    """Whole lines with their line breaks, and the place behind them; `offset` is such a place from before."""
    limit = None if end is None else _line_start(stream, end)
    place = _line_start(stream, start) if offset is None else offset
    go_to(stream, place)
    rest = b""
    while limit is None or place < limit:
        wanted = block_bytes if limit is None else min(block_bytes, limit - place - len(rest))
        data = stream.read(wanted) if wanted > 0 else b""
        block = rest + data
        if not block:
            return
        is_over = not data or (limit is not None and place + len(block) >= limit)
        cut = len(block) if is_over else block.rfind(b"\n") + 1
        block, rest = block[:cut], block[cut:]
        if block:
            place += len(block)
            yield block, place
        else:
            block_bytes *= 2  # A long line: do not put it together from many pieces.


def _line_start(stream: BinaryIO, place: int) -> int:
    """Where the first line that begins at `place` or after it begins."""
    if place == 0:
        return 0
    go_to(stream, place - 1)
    stream.readline()
    return stream.tell()


def go_to(stream: BinaryIO, place: int) -> None:
    """Move forward to a place; also in a stream that cannot seek."""
    if stream.seekable():
        stream.seek(place)
    else:
        # Packed content cannot be entered in the middle.
        while (ahead := place - stream.tell()) > 0 and stream.read(min(ahead, BLOCK_BYTES)):
            pass


def without_mark(block: bytes, behind: int) -> bytes:
    """A block without the byte order mark that a file of UTF-8 may begin with; `behind` is the place behind it."""
    return block.removeprefix(BOM_UTF8) if behind == len(block) else block


def decoded_lines(block: bytes, charset: str) -> list[str]:
    """The lines of a block without their line breaks; invalid bytes become replacement characters."""
    if b"\r" in block:
        return [line.decode(charset, "replace") for line in block.splitlines()]
    lines = block.decode(charset, "replace").split("\n")
    return lines if lines[-1] else lines[:-1]
