"""Rows: made, read by name and position, changed, nested, with a kind."""

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

USER = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
users = env.from_collection([Row("ada", 36), Row("bob", 5)], USER)
for row in users.map(lambda row: Row(name=row.name, age=row["age"] + row[1]), USER).execute_and_collect():
    print(row, row.name, row["age"], len(row), row.as_dict(), row.get_row_kind())
nested = Types.ROW_NAMED(["user", "tags"], [USER, Types.LIST(Types.STRING())])
for row in users.map(lambda row: Row(user=row, tags=[row.name[0]]), nested).execute_and_collect():
    print(row, row.user.name, row.tags)


def older(row):
    row[1] += 1
    row[0] = row[0].upper()
    return row


print(list(users.map(older, USER).execute_and_collect()))
kinds = Row.of_kind(RowKind.DELETE, "x", 1)
print(kinds, kinds.get_row_kind(), Row("a", 1) == Row("a", 1), Row("a", 1) == Row("a", 2), hash(Row(1)) == hash(Row(1)))
users.key_by(lambda row: row.name).reduce(lambda a, b: a).print()
env.execute()
