"""The file with the state of a subtask: blocks of bytes, and at the end a list that describes them.

    MAGIC  block*  footer (JSON)  length of the footer (8 bytes)  checksum of the footer (4 bytes)  MAGIC

Every block has a checksum and belongs to one state of one operator. So a reader reads only the blocks it needs, and can
name the state that is damaged. A file that was cut off has no footer and is refused.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Literal

from penstock.common.exceptions import CorruptStateError
from penstock.runtime.state.codec import decode_state, unreadable

MAGIC = b"PENSTOCK"
FORMAT_VERSION = 3
"""Since 2, keyed blocks say whether their values have times. Since 3, blocks may be compressed. Older files are read,
too. A file without compressed blocks is written in format 2, so that earlier versions can read it."""
_FORMAT_WITHOUT_COMPRESSION = 2
_FASTEST = 1
_TAIL = struct.Struct("<QI8s")

Kind = Literal["keyed", "operator", "memory"]


@dataclass(frozen=True)
class Block:
    """Where a part of a state is in the file."""

    operator_id: str
    kind: Kind
    name: str
    offset: int
    length: int
    checksum: int
    has_times: bool | None = None
    """Of keyed state: True if each value is stored with a time, because it expires; None if this is not known."""
    is_compressed: bool = False
    """True if the block is compressed with zlib. Length and checksum are those of the compressed bytes."""


class StateFileWriter:
    """Writes blocks to a stream, then the footer. `size` is the number of bytes written."""

    def __init__(self, out: BinaryIO, is_compressed: bool = False) -> None:
        self._out = out
        self._is_compressed = is_compressed
        self._blocks: list[Block] = []
        self._write_at = 0
        self.has_fixed_keys = True
        """False if a class of the program has a say in which key groups some of the keys belong to."""
        self._put(MAGIC)

    def add(
        self,
        operator_id: str,
        kind: Kind,
        name: str,
        content: bytes,
        has_times: bool | None = None,
        has_fixed_keys: bool = True,
    ) -> None:
        self.has_fixed_keys = self.has_fixed_keys and has_fixed_keys
        if self._is_compressed:
            content = zlib.compress(content, _FASTEST)
        place = self._write_at, len(content), zlib.crc32(content)
        self._blocks.append(Block(operator_id, kind, name, *place, has_times, self._is_compressed))
        self._put(content)

    def finish(self) -> None:
        blocks = [asdict(block) for block in self._blocks]
        if not self._is_compressed:
            for block in blocks:
                del block["is_compressed"]
        version = FORMAT_VERSION if self._is_compressed else _FORMAT_WITHOUT_COMPRESSION
        footer = json.dumps({"format": version, "blocks": blocks}).encode()
        self._put(footer)
        self._put(_TAIL.pack(len(footer), zlib.crc32(footer), MAGIC))

    def _put(self, content: bytes) -> None:
        self._out.write(content)
        self._write_at += len(content)

    @property
    def size(self) -> int:
        return self._write_at

    def states(self) -> frozenset[tuple[str, str, str]]:
        """(operator id, kind, name) of all states in the file."""
        return frozenset((block.operator_id, block.kind, block.name) for block in self._blocks)


class StateFileReader:
    """Reads the blocks of a state file.

    Error messages call the file `name`, and its operators as in `names`: operator id -> name.
    """

    def __init__(self, name: str, content: BinaryIO, size: int, names: dict[str, str] | None = None) -> None:
        self._name = name
        self._content = content
        self._names = names or {}
        self.blocks: list[Block] = [Block(**block) for block in self._footer(size)["blocks"]]

    def _footer(self, size: int) -> dict[str, Any]:
        if size < len(MAGIC) + _TAIL.size:
            raise CorruptStateError(f"state file {self._name} is damaged or cut off: it has only {size} bytes")
        length, checksum, magic = _TAIL.unpack(self._read(size - _TAIL.size, _TAIL.size))
        start = size - _TAIL.size - length
        footer = self._read(start, length) if magic == MAGIC and start >= 0 else b""
        if not footer or zlib.crc32(footer) != checksum:
            raise CorruptStateError(f"state file {self._name} is damaged or cut off: its end is not readable")
        found: dict[str, Any] = json.loads(footer)
        if found["format"] > FORMAT_VERSION:
            raise CorruptStateError(
                f"state file {self._name} has format {found['format']}, and this version of Penstock reads up to "
                f"{FORMAT_VERSION}; use the version that wrote it, or a newer one"
            )
        return found

    def _read(self, offset: int, length: int) -> bytes:
        self._content.seek(offset)
        return self._content.read(length)

    def values(self, kind: Kind) -> Iterator[tuple[Block, Any]]:
        """The blocks of one kind, with their values."""
        for block in self.blocks:
            if block.kind == kind:
                yield block, self.value(block)

    def content(self, block: Block) -> bytes:
        """The bytes that were added as this block; CorruptStateError if the file has changed since."""
        content = self._read(block.offset, block.length)
        if len(content) != block.length or zlib.crc32(content) != block.checksum:
            raise CorruptStateError(f"{self._where(block)} is damaged: its checksum does not match")
        return zlib.decompress(content) if block.is_compressed else content

    def value(self, block: Block) -> Any:
        try:
            return decode_state(self.content(block))
        except CorruptStateError:
            raise
        except Exception as error:
            raise unreadable(self._where(block), error) from error

    def _where(self, block: Block) -> str:
        operator = self._names.get(block.operator_id, block.operator_id)
        what = "the memory of its task" if block.kind == "memory" else f"state '{block.name}'"
        return f"operator '{operator}': {what} in state file {self._name}"
