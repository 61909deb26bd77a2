"""State in Parquet files: one state of one operator as one subtask left it.

Keys, namespaces, values and items are pickled; beside each is a column with the same as text where that is possible.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.json_text import json_of, text_of
from penstock.common.exceptions import CorruptStateError, StateMismatchError
from penstock.runtime.key_groups import key_group_of
from penstock.runtime.nan_keys import as_key
from penstock.runtime.saved_state import StateFolder, StateHandle
from penstock.runtime.state.codec import decode_state, encode_state, unreadable
from penstock.runtime.state.contents import Contents, PartialMaps
from penstock.runtime.state.operator import Distribution
from penstock.runtime.state.state_file import Kind, StateFileWriter
from penstock.runtime.state.table import VOID_NAMESPACE, Extent

FORMAT_VERSION = 2
ROWS_OF_GROUP = 32_768
BYTES_OF_GROUP = 16 << 20
_DESCRIPTION = "penstock"

KEYED_COLUMNS = pa.schema(
    [
        ("key_group", pa.int32()),
        ("key", pa.binary()),
        ("namespace", pa.binary()),
        ("value", pa.binary()),
        ("key_json", pa.string()),
        ("namespace_text", pa.string()),
        ("value_json", pa.string()),
    ]
)
OPERATOR_COLUMNS = pa.schema(
    [
        ("distribution", pa.string()),
        ("key", pa.binary()),
        ("item", pa.binary()),
        ("key_json", pa.string()),
        ("item_json", pa.string()),
    ]
)

PartRow = tuple[Any, ...]
"""The values of the columns of either kind of file."""


@dataclass(frozen=True)
class StateName:
    """Which state a file holds. `kind` and `name` are those of a block in a state file."""

    operator_id: str
    kind: Kind
    name: str

    def file_of(self, subtask: int) -> str:
        """Relative to the savepoint's folder."""
        if self.kind == "memory":
            return f"state/{self.operator_id}/memory/part-{subtask:05d}"
        return f"state/{self.operator_id}/{self.kind}/{_folder_name(self.name)}/part-{subtask:05d}.parquet"


def _folder_name(state: str) -> str:
    name = quote(state, safe="", errors="surrogatepass")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if name == name.lower() and len(name) <= 200:
        return name
    # Some file systems take `Sum` and `sum` for the same, and most have a limit.
    return f"{name[:180]}-{hashlib.sha256(state.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def state_of(handle: StateHandle) -> StateName:
    """The one state that a file of the canonical format holds."""
    ((operator_id, kind, name),) = handle.states
    return StateName(operator_id, cast(Kind, kind), name)


def keyed_row(key: Any, namespace: Any, value: Any, max_parallelism: int) -> PartRow:
    """A row of KEYED_COLUMNS."""
    key = as_key(key)
    return (
        key_group_of(key, max_parallelism),
        encode_state(key),
        None if namespace is VOID_NAMESPACE else encode_state(namespace),
        encode_state(value),
        json_of(key),
        text_of(namespace),
        json_of(value),
    )


def list_row(distribution: Distribution, item: Any) -> PartRow:
    """A row of OPERATOR_COLUMNS."""
    return distribution, None, encode_state(item), None, json_of(item)


def broadcast_row(key: Any, item: Any) -> PartRow:
    """A row of OPERATOR_COLUMNS."""
    return "broadcast", encode_state(key), encode_state(item), json_of(key), json_of(item)


class PartWriter:
    """Writes the files of one subtask; `handles` are those written."""

    def __init__(self, target: Folder, subtask: int, epoch: int, has_fixed_keys: bool = False) -> None:
        self._target = target
        self._subtask = subtask
        self._epoch = epoch
        self._has_fixed_keys = has_fixed_keys
        self.handles: list[StateHandle] = []

    def keyed(
        self,
        state: StateName,
        rows: Iterator[PartRow],
        has_parts: Callable[[], bool] = lambda: False,
        has_times: bool | None = False,
    ) -> None:
        """No rows, no file. `has_parts`, asked after the last row: True if the values are parts of maps."""
        first = next(rows, None)
        if first is not None:
            properties = lambda: {"has_parts": has_parts(), "has_times": has_times}  # noqa: E731
            self._write(state, KEYED_COLUMNS, chain([first], rows), properties)

    def operator(self, state: StateName, distribution: Distribution, rows: Iterable[PartRow]) -> None:
        """Writes a file even without rows: an empty list is a state, too."""
        self._write(state, OPERATOR_COLUMNS, rows, lambda: {"distribution": distribution})

    def memory(self, state: StateName, content: bytes) -> None:
        name = self._file(state)
        with self._target.create(name) as out:
            writer = StateFileWriter(out)
            writer.add(state.operator_id, state.kind, state.name, content)
            writer.finish()
        self._written(state, name)

    def _write(
        self, state: StateName, columns: Any, rows: Iterable[PartRow], properties: Callable[[], dict[str, Any]]
    ) -> None:
        name = self._file(state)
        sizes: list[int] = []
        with (
            self._target.create(name) as out,
            pq.ParquetWriter(out, columns, compression="zstd", write_page_checksum=True) as writer,
        ):
            for group in _groups(rows):
                writer.write_table(_table(group, columns), row_group_size=len(group))
                sizes.append(len(group))
            description = Description(FORMAT_VERSION, state.operator_id, state.kind, state.name, sizes, **properties())
            writer.add_key_value_metadata({_DESCRIPTION: description.encode()})
        self._written(state, name)

    def _file(self, state: StateName) -> str:
        name = state.file_of(self._subtask)
        self._target.within(posixpath.dirname(name)).make()
        return name

    def _written(self, state: StateName, name: str) -> None:
        states = frozenset({(state.operator_id, str(state.kind), state.name)})
        size = self._target.size(name)
        self.handles.append(StateHandle(name, self._epoch, size, Extent.ALL, states, self._has_fixed_keys))


def _groups(rows: Iterable[PartRow]) -> Iterator[list[PartRow]]:
    """Row groups that fit into memory, with the rows in order."""
    group: list[PartRow] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(map(len, filter(None, row[1:])))  # All but the first are bytes or texts.
        if len(group) >= ROWS_OF_GROUP or size >= BYTES_OF_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _within(groups: Any, key_groups: range | None) -> Any:
    if key_groups is None:
        return pc.is_valid(groups)
    return pc.and_(pc.greater_equal(groups, key_groups.start), pc.less(groups, key_groups.stop))


def _table(rows: list[PartRow], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )


@dataclass(frozen=True)
class Description:
    """What a file says about itself. Parquet has checksums for its pages, but not for the list of pages."""

    format: int
    operator: str
    kind: str
    state: str
    row_groups: list[int]
    """How many rows each has."""
    distribution: Distribution | None = None
    """Of operator state."""
    has_parts: bool = False
    """True if the values are parts of maps: those of one key and namespace add up."""
    has_times: bool | None = None
    """Of keyed state: True if the values carry times because they expire; None if that is not known."""

    def encode(self) -> str:
        text = json.dumps(asdict(self))
        return f"{zlib.crc32(text.encode())} {text}"

    @staticmethod
    def decode(encoded: str) -> Description:
        """ValueError if it is damaged, or of a format that is not known here."""
        checksum, _, text = encoded.partition(" ")
        if checksum != str(zlib.crc32(text.encode())):
            raise ValueError("the checksum of its description does not match")
        found = json.loads(text)
        if found["format"] > FORMAT_VERSION:
            raise ValueError(
                f"it has format {found['format']}, and this version of Penstock reads up to {FORMAT_VERSION}; use the "
                f"version that wrote it, or a newer one"
            )
        return Description(**found)


@dataclass(frozen=True)
class Part:
    """One Parquet file, to read. Errors are CorruptStateError, and name file, operator and state."""

    folder: StateFolder
    handle: StateHandle
    subtask: int
    operator_names: dict[str, str]

    def has_times(self) -> bool | None:
        with self._open(KEYED_COLUMNS) as (_, description):
            return description.has_times

    def contents(self, key_groups: range | None) -> Iterator[Contents]:
        """The entries of these key groups (None: all), in parts that fit into memory. Others are not unpickled."""
        with self._open(KEYED_COLUMNS) as (file, description):
            for number, size in enumerate(description.row_groups):
                groups = self._columns(file, number, ["key_group"], size).column(0)
                wanted = _within(groups, key_groups)
                if pc.any(wanted).as_py():
                    rows = self._columns(file, number, ["key", "namespace", "value"], size).filter(wanted)
                    contents = self._contents(*(column.to_pylist() for column in rows.columns))
                    yield PartialMaps(contents) if description.has_parts else contents

    def _columns(self, file: Any, number: int, names: list[str], size: int) -> Any:
        rows = file.read_row_group(number, columns=names)
        if len(rows) != size:
            raise ValueError(f"there are {len(rows)} rows where {size} were written")
        return rows

    def _contents(self, keys: list[bytes], namespaces: list[bytes | None], values: list[bytes]) -> dict[Any, Any]:
        contents: dict[Any, dict[Any, Any]] = {}
        known: dict[bytes | None, dict[Any, Any]] = {}
        for key, namespace, value in zip(keys, namespaces, values, strict=True):
            entries = known.get(namespace)
            if entries is None:
                decoded = VOID_NAMESPACE if namespace is None else self._decoded(namespace)
                entries = known[namespace] = contents.setdefault(decoded, {})
            name, held = self._decoded(key), self._decoded(value)
            if name in entries:
                # Two parts of one map.
                entries[name].update(held)
            else:
                entries[name] = held
        return contents

    def saved(self) -> tuple[Distribution, Any]:
        """How a list or broadcast state is dealt out, and its items: a list, or the broadcast dictionary."""
        keys: list[Any] = []
        items: list[Any] = []
        with self._open(OPERATOR_COLUMNS) as (file, description):
            for number, size in enumerate(description.row_groups):
                rows = self._columns(file, number, ["key", "item"], size)
                keys.extend(rows.column("key").to_pylist())
                items.extend(map(self._decoded, rows.column("item").to_pylist()))
        distribution = cast(Distribution, description.distribution)
        if distribution != "broadcast":
            return distribution, items
        return distribution, dict(zip(map(self._decoded, keys), items, strict=True))

    @contextmanager
    def _open(self, columns: Any) -> Iterator[tuple[Any, Description]]:
        """The file; what goes wrong while it is read is reported as damage to this state."""
        try:
            with (
                self.folder.open(self.handle.name) as content,
                pq.ParquetFile(content, page_checksum_verification=True) as file,
            ):
                yield file, self._description(file, columns)
        except FileNotFoundError:
            raise CorruptStateError(f"{self._where()} is missing") from None
        except StateMismatchError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:  # Arrow raises any of these for damage.
            raise CorruptStateError(f"{self._where()} is damaged or cut off: {error}") from error

    def _description(self, file: Any, columns: Any) -> Description:
        found = Description.decode((file.metadata.metadata or {}).get(_DESCRIPTION.encode(), b"").decode())
        state = state_of(self.handle)
        if StateName(found.operator, cast(Kind, found.kind), found.state) != state:
            raise ValueError(f"it holds {found.kind} state '{found.state}' of operator {found.operator}")
        if not file.schema_arrow.equals(columns):
            raise ValueError(f"its columns are {file.schema_arrow.names}")
        return found

    def _decoded(self, content: bytes) -> Any:
        try:
            return decode_state(content)
        except Exception as error:
            raise unreadable(self._where(), error) from error

    def _where(self) -> str:
        state = state_of(self.handle)
        operator = self.operator_names.get(state.operator_id, state.operator_id)
        return (
            f"operator '{operator}': state '{state.name}' in file {self.folder.path_of(self.handle.name)} "
            f"(subtask {self.subtask})"
        )
