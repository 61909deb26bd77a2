"""Avro's container files: blocks of records, with marks between them at which a reader can begin."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from penstock.common.exceptions import ConnectorError
from penstock.common.optional_packages import optional_package
from penstock.common.serialization import BulkWriter
from penstock.datastream.connectors.file_system.formats import FileBatch, FileToRead
from penstock.datastream.formats.avro_resolution import mismatch
from penstock.datastream.formats.avro_rows import Converter, record_writer

_CHUNK = 1 << 16
_SHOWN = 200
_MAGIC = b"Obj\x01"
_HEADER = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}


def fastavro(user: str) -> Any:
    """The library; an error that says how to install it, if it is missing."""
    return optional_package("fastavro", "avro", user)


def expanded(user: str, schema: Any) -> Any:
    """The schema with definitions in place of names; ValueError if it is not a schema."""
    library = fastavro(user)
    try:
        return library.schema.expand_schema(schema)
    except (library.schema.SchemaParseException, library.schema.UnknownType, KeyError, TypeError) as failure:
        raise ValueError(f"{user}: not an Avro schema: {type(failure).__name__}: {failure}") from failure


# --- reading ---------------------------------------------------------------------------------------------------------


def avro_batches(file: FileToRead, schema: Any, offset: int | None) -> Iterator[FileBatch]:
    """The blocks of a file, or of a part of it, each as a batch; offsets are the places of blocks.

    A block belongs to the part in which the mark before it begins. A damaged block is one bad record, and reading
    continues after the next mark.
    """
    with file.open() as stream:
        container = _Container(file.path, stream, schema)
        place = container.first_block(file.start) if offset is None else offset
        while file.end is None or place - len(container.mark) < file.end:
            batch = container.block_at(place)
            if batch is None:
                return
            yield batch
            place = batch.offset


class _Container:
    """An open file: its header, and its blocks one after the other."""

    def __init__(self, path: str, stream: BinaryIO, schema: Any) -> None:
        self._library = fastavro("FileSource")
        self._path = path
        # Some packed files can only be read forwards.
        self._stream = stream if stream.seekable() else io.BytesIO(stream.read())
        header = self._read_header()
        self.mark: bytes = header["sync"]
        self._begin = self._stream.tell()
        self._reader_schema = self._checked(header["meta"], expanded("FileSource", schema))
        self._blocks: Iterator[Any] | None = None
        self._next_place = -1

    def _read_header(self) -> Any:
        try:
            header = self._library.schemaless_reader(self._stream, _HEADER, None)
        except (EOFError, ValueError, IndexError) as failure:
            raise self._not_avro() from failure
        if header["magic"] != _MAGIC:
            raise self._not_avro()
        return header

    def _not_avro(self) -> ConnectorError:
        return ConnectorError(
            f"file {self._path}: this is not an Avro file, which begins with b'Obj\\x01' and a schema"
        )

    def _checked(self, about: dict[str, bytes], schema: Any) -> Any:
        """The schema to read by; None if it is that of the file, which is quicker."""
        written = expanded(f"file {self._path}", json.loads(about["avro.schema"]))
        found = mismatch(written, schema)
        if found is not None:
            raise ConnectorError(
                f"file {self._path}: {found}; give a schema that fits the file, or one with defaults for what is new"
            )
        try:
            check_codec(about.get("avro.codec", b"null").decode())
        except ValueError as failure:
            raise ConnectorError(f"file {self._path}: {failure}") from failure
        return None if written == schema else schema

    def first_block(self, start: int) -> int:
        """Where the first block whose mark is at `start` or after it begins; the file's end if there is none."""
        if start <= self._begin - len(self.mark):
            return self._begin
        place, tail = self._stream.seek(start), b""
        while chunk := self._stream.read(_CHUNK):
            at = (tail + chunk).find(self.mark)
            if at >= 0:
                return place - len(tail) + at + len(self.mark)
            place += len(chunk)
            tail = (tail + chunk)[1 - len(self.mark) :]
        return place

    def block_at(self, place: int) -> FileBatch | None:
        """The block that begins there; None at the end of the file."""
        if self._blocks is None or self._next_place != place:
            self._stream.seek(0)
            self._blocks = iter(self._library.block_reader(self._stream, self._reader_schema))
            self._stream.seek(place)
        try:
            block = next(self._blocks, None)
            records = [] if block is None else list(block)
        except (OSError, MemoryError):
            raise
        except Exception as failure:  # Whatever a damaged block leads to.
            return self._damaged(place, failure)
        if block is None:
            return None
        self._next_place = block.offset + block.size
        return FileBatch(records, self._next_place)

    def _damaged(self, place: int, failure: Exception) -> FileBatch:
        self._blocks = None
        self._stream.seek(place)
        raw = self._stream.read(_SHOWN)
        error = f"a block cannot be read: {type(failure).__name__}: {failure}"
        return FileBatch([], self.first_block(place + 1), [(raw, error)])


def check_codec(codec: str) -> None:
    """ValueError if blocks that are packed with this codec cannot be read and written here."""
    writer = fastavro("Avro").writer
    writer(io.BytesIO(), "null", [None], codec=codec)


# --- writing ---------------------------------------------------------------------------------------------------------


class AvroFileWriter(BulkWriter):
    """Writes the records of one file."""

    def __init__(self, stream: BinaryIO, schema: Any, codec: str) -> None:
        self._library = fastavro("AvroBulkWriters")
        self._schema = self._library.parse_schema(schema)
        self._record = record_writer(expanded("AvroBulkWriters", schema))
        self._writer = self._library.write.Writer(stream, self._schema, codec=codec)

    def add_element(self, element: Any) -> None:
        write_record(self._library, "AvroBulkWriters", self._schema, self._record, element, self._writer.write)

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.flush()


def write_record(
    library: Any, user: str, schema: Any, convert: Converter, element: Any, write: Callable[[Any], object]
) -> None:
    """Write an element as a record of the schema; ValueError if it does not fit."""
    try:
        record = convert(element)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as failure:
        raise ValueError(f"{user}: {element!r} does not fit the Avro schema: {failure}") from failure
    try:
        write(record)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as failure:
        raise _not_of_schema(library, user, schema, record, failure) from failure


def _not_of_schema(library: Any, user: str, schema: Any, record: Any, failure: Exception) -> ValueError:
    """The error for an element; validation names the field, which writing often does not."""
    cause: Exception = failure
    try:
        library.validation.validate(record, schema, raise_errors=True)
    except library.validation.ValidationError as found:
        cause = ValueError(" ".join(str(found).split()))
    except Exception as other:  # Validation trips over some values itself.
        cause = other
    return ValueError(f"{user}: {record!r} does not fit the Avro schema: {type(failure).__name__}: {cause}")
