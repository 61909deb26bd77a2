"""Results of statements: printed, collected, with the kinds of changes."""

import datetime
import decimal

from pyflink.table import DataTypes, EnvironmentSettings, ResultKind, Row, TableEnvironment
from pyflink.table.expressions import col

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")
t_env.get_config().set("table.local-time-zone", "UTC")

table = t_env.from_elements([(1, "Hi", 1.5), (2, None, 2.5), (1, "Ho", 3.0)], ["a", "b", "c"])
table.print_schema()
table.execute().print()
for row in table.execute().collect():
    print(row, row.get_row_kind(), row[0])

changes = t_env.sql_query(f"SELECT a, COUNT(*) AS n, SUM(c) AS s FROM {table} GROUP BY a")
changes.execute().print()
with changes.execute().collect() as rows:
    for row in rows:
        print(row, row.get_row_kind())
print(changes.to_pandas())
print(changes.get_schema())

types = t_env.from_elements(
    [
        (
            datetime.date(2020, 1, 2),
            datetime.time(1, 2, 3),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 6000),
            decimal.Decimal("1.20"),
            [1, 2],
            {"a": 1},
            Row(1, "x"),
            bytearray(b"ab"),
            True,
        )
    ],
    DataTypes.ROW(
        [
            DataTypes.FIELD("d", DataTypes.DATE()),
            DataTypes.FIELD("t", DataTypes.TIME()),
            DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
            DataTypes.FIELD("de", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("ar", DataTypes.ARRAY(DataTypes.INT())),
            DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
            DataTypes.FIELD(
                "r", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())])
            ),
            DataTypes.FIELD("by", DataTypes.BYTES()),
            DataTypes.FIELD("bo", DataTypes.BOOLEAN()),
        ]
    ),
)
types.execute().print()
for row in types.execute().collect():
    print(row)
print(types.get_schema())

t_env.execute_sql(
    "SELECT CAST('a very long string that is longer than thirty characters' AS STRING) AS s, CAST(1 AS TINYINT) AS ti, "
    "CAST(1 AS SMALLINT) AS si, CAST(1.5 AS FLOAT) AS f, TIMESTAMP '2020-01-01 00:00:00' AS ts, INTERVAL '1' DAY AS i, "
    "'日本' AS uni, CAST('abc' AS VARCHAR(5)) AS averyveryverylongcolumnnamethatislong, "
    "CAST(1 AS INT) AS alongintegername, CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP_LTZ(3)) AS z, INTERVAL "
    "'1' MONTH AS mo"
).print()
t_env.execute_sql("SELECT '日本日本日本日本日本日本日本日本日本日本日本日本' AS s").print()
table.where(col("a") > 5).execute().print()

created = t_env.execute_sql("CREATE TABLE s (a BIGINT, b STRING) WITH ('connector' = 'blackhole')")
created.print()
print(created.get_result_kind() == ResultKind.SUCCESS, created.get_job_client())
t_env.execute_sql("CREATE TABLE s2 (a BIGINT, b STRING) WITH ('connector' = 'blackhole')")
t_env.execute_sql("DESCRIBE s").print()
t_env.execute_sql("SHOW CREATE TABLE s").print()
t_env.execute_sql("CREATE VIEW v AS SELECT 1 AS a").print()
t_env.execute_sql("SHOW CURRENT DATABASE").print()
t_env.execute_sql("CREATE DATABASE other").print()
t_env.execute_sql("USE other").print()
t_env.execute_sql("SHOW TABLES").print()
print(t_env.get_current_catalog(), t_env.get_current_database(), t_env.list_databases(), t_env.list_tables())
t_env.use_database("default_database")

inserted = t_env.execute_sql(f"INSERT INTO s SELECT a, b FROM {table}")
inserted.wait()
inserted.print()
print(inserted.get_result_kind() == ResultKind.SUCCESS_WITH_CONTENT, inserted.get_table_schema())
statements = t_env.create_statement_set()
statements.add_insert("s", table.select(col("a"), col("b")))
statements.add_insert_sql(f"INSERT INTO s2 SELECT a, b FROM {table}")
both = statements.execute()
both.wait()
both.print()
t_env.execute_sql("EXPLAIN SELECT 1 + 1 AS two").print()
