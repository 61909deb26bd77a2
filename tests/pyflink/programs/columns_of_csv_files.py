"""Types of tables name the columns of CSV files, as PyFlink's formats want them."""

import os
import tempfile

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "in.csv"), "w") as file:
    file.write("1,2.5,x;y\n2,0.1,\n")

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
schema = (
    CsvSchema.builder()
    .add_number_column("id", number_type=DataTypes.INT())
    .add_number_column("price", DataTypes.DOUBLE())
    .add_array_column("tags", ";", element_type=DataTypes.STRING())
    .build()
)
source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), os.path.join(folder, "in.csv")).build()
rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
written = CsvSchema.builder().add_number_column("twice", DataTypes.BIGINT()).add_string_column("tags").build()
rows.map(
    lambda row: Row(twice=row["id"] * 2, tags="/".join(row["tags"])),
    Types.ROW_NAMED(["twice", "tags"], [Types.LONG(), Types.STRING()]),
).sink_to(FileSink.for_bulk_format(os.path.join(folder, "out"), CsvBulkWriters.for_schema(written)).build())
rows.map(lambda row: (row["id"], row["price"], list(row["tags"]))).print()
env.execute()

for path, _, names in sorted(os.walk(os.path.join(folder, "out"))):
    for name in names:
        if not name.startswith("."):
            with open(os.path.join(path, name)) as file:
                print(file.read().strip())
