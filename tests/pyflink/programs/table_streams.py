"""Tables become streams, and streams tables."""

from pyflink.common import Row, RowKind, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import DataTypes, Schema, StreamTableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Tumble

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
t_env = StreamTableEnvironment.create(env)
t_env.get_config().set("table.local-time-zone", "UTC")


def show(made):
    print(", ".join(made.get_schema().get_field_names()))
    for each in made.execute().collect():
        print(each.get_row_kind(), each)


pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
show(t_env.from_data_stream(pairs))
show(t_env.from_data_stream(pairs).alias("word", "n").group_by(col("word")).select(col("word"), col("n").sum))
show(t_env.from_data_stream(pairs, col("word"), col("n")))
named = env.from_collection(
    [Row("x", 10), Row("y", 20)], Types.ROW_NAMED(["name", "value"], [Types.STRING(), Types.LONG()])
)
t_env.create_temporary_view("named", named)
show(t_env.sql_query("SELECT `value` + 1 AS v, name FROM named"))
single = env.from_collection([1, 2], Types.INT())
show(t_env.from_data_stream(single))
schema = Schema.new_builder().column_by_expression("double", "f1 * 2").build()
show(t_env.from_data_stream(pairs, schema))


class Assigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


timed = pairs.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Assigner())
)
with_time = t_env.from_data_stream(
    timed,
    Schema.new_builder()
    .column("f0", DataTypes.STRING())
    .column("f1", DataTypes.INT())
    .column_by_metadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
    .watermark("rowtime", "SOURCE_WATERMARK()")
    .build(),
)
show(
    with_time.window(Tumble.over(lit(2).seconds).on(col("rowtime")).alias("w"))
    .group_by(col("w"))
    .select(col("w").start, col("w").end, col("f1").sum, col("f0").count.alias("n"))
)

table = t_env.from_elements([("a", 1), ("b", 2), ("a", 5)], ["word", "n"])
t_env.to_data_stream(table).map(lambda row: f"{row[0]}: {row[1]}", Types.STRING()).print()
env.execute()
counted = table.group_by(col("word")).select(col("word"), col("n").sum.alias("s"))
for row in t_env.to_changelog_stream(counted).execute_and_collect():
    print(row.get_row_kind(), row)
changes = env.from_collection(
    [
        Row.of_kind(RowKind.INSERT, "a", 1),
        Row.of_kind(RowKind.INSERT, "b", 2),
        Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, "a", 10),
        Row.of_kind(RowKind.DELETE, "b", 2),
    ],
    Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.LONG()]),
)
show(t_env.from_changelog_stream(changes).select(col("n").sum))
