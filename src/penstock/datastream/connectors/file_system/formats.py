"""What files contain, and how they are read from any offset on."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import DeserializationSchema
from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.connectors.file_system.text_lines import decoded_lines, line_blocks, without_mark

_RECORDS_AT_ONCE = 1024
_PACKED_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class FileBatch:
    """Records of a file, and the offset behind them, in whatever unit the format counts."""

    records: list[Any]
    offset: int
    bad: list[tuple[bytes, str]] = field(default_factory=list)
    """What could not be read, and why."""


@dataclass(frozen=True)
class FileToRead:
    """A file, or the part of it that begins in the bytes from `start` to before `end` (None: to its end)."""

    path: str
    open_raw: Callable[[], BinaryIO]
    start: int = 0
    end: int | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file's content, unpacked if its name says that it is packed."""
        with self.open_raw() as raw:
            unpacks = [unpack for suffix, unpack in _UNPACKED.items() if self.path.lower().endswith(suffix)]
            if not unpacks:
                yield raw
                return
            with unpacks[0](raw) as stream:
                yield stream


class _Inflating:
    """Unpacks a zlib stream, or several in a row."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._unpacker = zlib.decompressobj()
        self._is_begun = False

    def read(self, most: int) -> bytes:
        while True:
            if self._unpacker.eof:
                rest, self._unpacker, self._is_begun = self._unpacker.unused_data, zlib.decompressobj(), False
            else:
                rest = self._unpacker.unconsumed_tail
            packed = rest or self._packed.read(_PACKED_AT_ONCE)
            if not packed and not self._is_begun:
                return b""
            self._is_begun = True
            # Even without more packed data, something may be left that did not fit into the last answer.
            if data := self._unpacker.decompress(packed, most):
                return data
            if not packed and not self._unpacker.eof:
                raise EOFError("the file ends within a packed stream: it is not complete")

    def close(self) -> None:
        """Does nothing: the caller that opened the file closes it."""


class _ForwardOnly(io.RawIOBase):
    """A stream over unpacked content: it knows its position, but cannot go back."""

    def __init__(self, unpacked: Any) -> None:
        self._unpacked = unpacked
        self._place = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read(len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def tell(self) -> int:
        return self._place


def _unpack_zstd(stream: BinaryIO) -> BinaryIO:
    from pyarrow import CompressedInputStream, PythonFile

    return cast(BinaryIO, io.BufferedReader(_ForwardOnly(CompressedInputStream(PythonFile(stream, mode="r"), "zstd"))))


def _inflate(stream: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_ForwardOnly(_Inflating(stream))))


_UNPACKED: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    ".gzip": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    ".deflate": _inflate,
    ".bz2": lambda stream: cast(BinaryIO, bz2.BZ2File(stream)),
    ".xz": lambda stream: cast(BinaryIO, lzma.LZMAFile(stream)),  # noqa: SIM115 - the caller closes it
    ".zst": _unpack_zstd,
}


def is_packed(path: str) -> bool:
    return path.lower().endswith(tuple(_UNPACKED))


class FileFormat:
    """What all formats can do."""

    @property
    def can_start_anywhere(self) -> bool:
        """True if a part of a file can be read without what is before it."""
        return False

    def read(self, stream: BinaryIO) -> Iterator[Any]:
        """The records of a file, from its beginning. For formats of your own: this is all they need.

        A reader that continues in the middle also reads from the beginning, and skips what was read before.
        """
        raise UnsupportedFeatureError(
            f"FileSource cannot read {type(self).__name__} files; use text, CSV, Avro, Parquet or ORC, or a format of "
            f"your own that overrides read(stream)"
        )

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        """The file from an offset on; None for its beginning. Offsets count records here."""
        with file.open() as stream:
            yield from self._skipping(self.read(stream), offset or 0)

    @staticmethod
    def _skipping(records: Iterator[Any], done: int) -> Iterator[FileBatch]:
        number, batch = 0, []
        for record in records:
            number += 1
            if number <= done:
                continue
            batch.append(record)
            if len(batch) >= _RECORDS_AT_ONCE:
                yield FileBatch(batch, number)
                batch = []
        if batch:
            yield FileBatch(batch, number)

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records; None if it does not matter."""
        return None


class StreamFormat(FileFormat):
    """A format that is read record by record. Subclass it with `read(stream)` for a format of your own.

    `FileSource` has an example.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is an element, without its line break."""
        return TextLineFormat(charset_name)

    @staticmethod
    def line_format(deserialization_schema: DeserializationSchema) -> StreamFormat:
        """Each line is a message of the schema: JSON objects, CSV rows without a header and so on."""
        return SchemaLineFormat(deserialization_schema)


class BulkFormat(FileFormat):
    """A format that is read batch by batch, such as Parquet.

    `ParquetColumnarRowInputFormat` has an example.
    """


@dataclass(frozen=True)
class TextLineFormat(StreamFormat):
    r"""Lines of text; made by `StreamFormat.text_line_format()`. Lines end with `\n`, `\r\n` or `\r`."""

    charset_name: str = "UTF-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.charset_name)
        except LookupError:
            raise ValueError(
                f"text_line_format: unknown character set {self.charset_name!r}; use a name such as 'UTF-8'"
            ) from None

    @property
    def can_start_anywhere(self) -> bool:
        return "\n".encode(self.charset_name) == b"\n"

    def read(self, stream: BinaryIO) -> Iterator[str]:
        for line in io.TextIOWrapper(stream, self.charset_name, errors="replace"):
            yield line.removesuffix("\n")

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        if not self.can_start_anywhere:
            yield from super().read_file(file, offset)
            return
        is_utf8 = codecs.lookup(self.charset_name).name == "utf-8"
        with file.open() as stream:
            for block, behind in line_blocks(stream, file.start, file.end, offset):
                text = without_mark(block, behind) if is_utf8 else block
                yield FileBatch(decoded_lines(text, self.charset_name), behind)

    def get_produced_type(self) -> TypeInformation | None:
        return Types.STRING()


@dataclass(frozen=True)
class SchemaLineFormat(StreamFormat):
    """Lines that a schema turns into elements; made by `StreamFormat.line_format(schema)`. Empty lines are left out."""

    schema: DeserializationSchema

    @property
    def can_start_anywhere(self) -> bool:
        return True

    def __post_init__(self) -> None:
        if not isinstance(self.schema, DeserializationSchema):
            raise TypeError(f"line_format needs a DeserializationSchema, got {self.schema!r}")

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        with file.open() as stream:
            for block, behind in line_blocks(stream, file.start, file.end, offset):
                yield self._deserialized(without_mark(block, behind).splitlines(), behind)

    def _deserialized(self, lines: list[bytes], behind: int) -> FileBatch:
        batch = FileBatch([], behind)
        for line in filter(None, lines):
            try:
                record = self.schema.deserialize(line)
            except Exception as failure:  # Whatever a schema raises makes the line a bad record.
                batch.bad.append((line, f"{type(failure).__name__}: {failure}"))
                continue
            if record is not None:
                batch.records.append(record)
        return batch

    def get_produced_type(self) -> TypeInformation | None:
        return self.schema.get_produced_type()
