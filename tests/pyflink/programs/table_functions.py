"""Functions in Python: scalar and table functions, in SQL and in the Table API."""

from pyflink.table import (
    DataTypes,
    EnvironmentSettings,
    ScalarFunction,
    TableEnvironment,
    TableFunction,
)
from pyflink.table.expressions import call, col
from pyflink.table.udf import udf, udtf

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")
table = t_env.from_elements([(1, "a b"), (2, "c"), (3, None), (1, "")], ["n", "words"])


def show(made):
    print(", ".join(made.get_schema().get_field_names()))
    for each in made.execute().collect():
        print(each.get_row_kind(), each)


@udf(result_type=DataTypes.BIGINT())
def add(i, j):
    return i + j


class Greeting(ScalarFunction):
    def open(self, function_context):
        self.word = "Hello"

    def eval(self, name):
        return None if name is None else f"{self.word} {name}"


greet = udf(Greeting(), result_type=DataTypes.STRING())
show(table.select(add(col("n"), 10), greet(col("words")).alias("g"), add(col("n"), add(col("n"), 1))))
t_env.create_temporary_system_function("greet", greet)
t_env.create_temporary_function("added", add)
show(t_env.sql_query(f"SELECT greet(words) AS g, added(n, 1) FROM {table} WHERE added(n, n) > 2"))
show(table.select(call("greet", "you"), call("added", col("n"), 1).alias("p")))


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def split(line):
    for word in (line or "").split():
        yield word, len(word)


class Repeat(TableFunction):
    def eval(self, n):
        yield from range(n)


repeat = udtf(Repeat(), result_types=DataTypes.BIGINT())
t_env.create_temporary_system_function("split", split)
show(table.join_lateral(split(col("words")).alias("word", "length")).select(col("n"), col("word"), col("length")))
show(table.left_outer_join_lateral(split(col("words")).alias("word", "length")).select(col("n"), col("word")))
show(t_env.sql_query(f"SELECT n, w, l FROM {table}, LATERAL TABLE(split(words)) AS T(w, l)"))
show(table.join_lateral(repeat(col("n")).alias("i")).select(col("n"), col("i")))
