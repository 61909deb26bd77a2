"""Methods of tables and expressions, with the names that columns get."""

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import (
    and_,
    array,
    call_sql,
    coalesce,
    col,
    concat,
    concat_ws,
    if_then_else,
    lit,
    map_,
    not_,
    null_of,
    or_,
    range_,
    row,
    with_columns,
    without_columns,
)

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")
t_env.get_config().set("table.local-time-zone", "UTC")
table = t_env.from_elements(
    [(1, "Anna", 2.5, "x y"), (2, "bob", None, "y"), (3, "Carl", -1.5, None), (1, "Dora", 4.0, "")],
    ["a", "b", "c", "d"],
)


def show(made, in_order=True):
    print(", ".join(made.get_schema().get_field_names()))
    lines = [f"{each.get_row_kind()} {each}" for each in made.execute().collect()]
    for line in lines if in_order else sorted(lines):
        print(line)


show(table.select(col("a") + 1, col("b").upper_case, col("c").cast(DataTypes.STRING()), (col("a") * 2).alias("twice")))
show(table.select(table.b, table.a % 2, -table.c, col("c").abs, col("c").round(0), lit(7), lit("x"), lit(1.5)))
show(table.where((col("a") == 1) & (col("b") != "Anna")).select(col("*")))
show(table.filter(or_(col("c").is_null, not_(col("d").is_not_null))).select(col("b")))
show(table.where(and_(col("a").between(1, 2), col("b").like("%o%"))).select(col("b"), col("b").char_length))
show(table.where(col("a").in_(2, 3)).select(with_columns(range_("a", "c"))))
show(table.select(without_columns(col("b"), col("d"))))
show(table.alias("w", "x", "y", "z").select(col("z"), col("w")))
show(table.add_columns((col("a") + 10).alias("e"), concat(col("b"), "!")).drop_columns(col("c"), col("d")))
show(table.add_or_replace_columns((col("a") * 100).alias("a")).rename_columns(col("b").alias("name")))
show(table.select(if_then_else(col("a") > 1, "many", "one").alias("m"), coalesce(col("c"), 0.0), col("c").if_null(9.0)))
show(
    table.select(
        col("b").substring(2, 2), col("b") + "!", concat_ws("-", col("b"), col("d")), col("b").replace("a", "4")
    )
)
show(
    table.select(row(col("a"), col("b")).alias("r"), array(1, 2, 3).at(2), map_("k", col("a")).alias("m")).select(
        col("r").get(0), col("m"), col("r").get(1).alias("s")
    )
)
show(table.select(null_of(DataTypes.INT()).is_null, call_sql("a + 1"), col("d").trim(), col("b").lower_case.init_cap))

show(table.group_by(col("a")).select(col("a"), col("c").sum, col("b").count.alias("n"), col("c").max - col("c").min))
show(table.select(col("a").count.distinct, col("c").avg))
show(table.group_by((col("a") % 2).alias("odd")).select(col("odd"), col("a").max))
show(table.select(col("a")).distinct())

other = t_env.from_elements([(1, "one"), (2, "two"), (2, "zwei"), (5, "five")], ["k", "v"])
show(table.join(other, col("a") == col("k")).select(col("b"), col("v")), in_order=False)
show(table.join(other).where((col("a") == col("k")) & (col("v") == "one")).select(col("b")), in_order=False)
show(table.select(col("a")).union_all(other.select(col("k"))), in_order=False)
show(table.where(col("a").in_(other.select(col("k")))).select(col("b")), in_order=False)
show(table.order_by(col("c").desc).fetch(2).select(col("b")))
show(table.order_by(col("c").asc).fetch(2).select(col("b")))
show(table.order_by(col("a"), col("b").desc).limit(1, 1).select(col("b")))
t_env.create_temporary_view("people", table)
show(t_env.from_path("people").select(col("b")))
show(t_env.sql_query("SELECT COUNT(*) AS n FROM people"))
print("people" in t_env.list_tables(), t_env.drop_temporary_view("people"), "people" in t_env.list_views())
