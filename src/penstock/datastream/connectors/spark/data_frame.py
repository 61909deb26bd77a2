"""The rows of a Spark DataFrame as a stream."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.datastream.connectors.file_system.source import FileSource
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.connectors.support.split_dealing import DealtSplits, SplitsEnumerator
from penstock.datastream.connectors.support.split_reading import OffsetSplit
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat
from penstock.datastream.lowering.data_frames import LoweredRowFormat, columns_of, with_program
from penstock.datastream.lowering.expressions import Column
from penstock.datastream.lowering.program import LoweredProgram
from penstock.files.locations import location_within

__all__ = ["DataFrameSource"]

_BASIC_TYPES: dict[str, Callable[[], TypeInformation]] = {
    "string": Types.STRING,
    "boolean": Types.BOOLEAN,
    "byte": Types.BYTE,
    "short": Types.SHORT,
    "integer": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "date": Types.SQL_DATE,
    "timestamp": Types.INSTANT,
    "timestamp_ntz": Types.SQL_TIMESTAMP,
    "binary": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
}


class DataFrameSource(Source[Any, OffsetSplit, DealtSplits]):
    """The rows of a batch DataFrame; made by `env.from_data_frame(df)`.

    Computing a DataFrame twice may give its rows in another order, so it is computed once: its rows are written as
    Parquet files next to the job's checkpoints, in the partitions they have, and read from there. A checkpoint refers
    to those files; a restored job continues to read them.
    """

    def __init__(self, data_frame: Any) -> None:
        super().__init__()
        if not hasattr(data_frame, "schema") or not hasattr(data_frame, "write"):
            raise TypeError(f"from_data_frame needs a Spark DataFrame, got {data_frame!r}")
        if data_frame.isStreaming:
            raise InvalidProgramError("DataFrameSource reads batch DataFrames; give others to env.from_data_frame(...)")
        self._data_frame = data_frame
        schema = data_frame.schema.jsonValue()
        self.row_type = row_type_of(schema)
        self._columns = columns_of(schema)
        self._program: LoweredProgram | None = None
        self._keeps_all = True

    def __repr__(self) -> str:
        return f"DataFrameSource({self.row_type!r})"

    def lowerable_columns(self) -> tuple[list[str], list[Column]]:
        return self.row_type.get_field_names(), self._columns

    def lowered(self, program: LoweredProgram, keeps_all: bool) -> DataFrameSource:
        """The source of what `program` makes of the rows; `keeps_all` if a later job may continue to read the files."""
        source = DataFrameSource(self._data_frame)
        source._program, source._keeps_all = program, keeps_all
        return source

    def __getstate__(self) -> dict[str, Any]:
        # The rows are in files when readers begin: a DataFrame cannot leave the driver, and need not.
        return {**self.__dict__, "_data_frame": None}

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        return self.row_type

    def create_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit]
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return self.restore_enumerator(context, DealtSplits())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], checkpoint: DealtSplits
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        # A new folder for every attempt: what a failed one left behind is ignored.
        folder = location_within(context.get_storage_folder(), secrets.token_hex(8))
        return SplitsEnumerator(context, partial(self._written, folder), former=checkpoint)

    def _written(self, folder: str) -> list[OffsetSplit]:
        if self._data_frame is None:
            raise InvalidProgramError(
                "from_data_frame: the DataFrame cannot go to another process; run the job in the program that made it"
            )
        data_frame = self._data_frame
        if self._program is not None:
            data_frame = with_program(data_frame, self._program, self._keeps_all)
        data_frame.write.parquet(folder)
        return self._files(folder)._find()

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, OffsetSplit]:
        return self._files("rows").create_reader(context)

    def _files(self, folder: str) -> FileSource:
        if self._program is not None:
            return FileSource.for_bulk_file_format(LoweredRowFormat(self.row_type, self._program), folder).build()
        return FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(self.row_type), folder).build()


def row_type_of(struct: dict[str, Any]) -> RowTypeInfo:
    """The type of rows from a Spark schema, as JSON."""
    fields = struct["fields"]
    return Types.ROW_NAMED([field["name"] for field in fields], [_type_of(field["type"]) for field in fields])


def _type_of(spark_type: Any) -> TypeInformation:
    if isinstance(spark_type, str):
        if spark_type in _BASIC_TYPES:
            return _BASIC_TYPES[spark_type]()
        if re.match(r"decimal\b", spark_type):
            return Types.BIG_DEC()
        if re.match(r"(var)?char\b", spark_type):
            return Types.STRING()
    elif spark_type["type"] == "struct":
        return row_type_of(spark_type)
    elif spark_type["type"] == "array":
        return Types.LIST(_type_of(spark_type["elementType"]))
    elif spark_type["type"] == "map":
        return Types.MAP(_type_of(spark_type["keyType"]), _type_of(spark_type["valueType"]))
    raise UnsupportedFeatureError(
        f"from_data_frame: a column of type {spark_type!r} has no counterpart in a row; cast or drop it first"
    )
