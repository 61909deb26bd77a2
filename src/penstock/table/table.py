"""Tables of the Table API: each is a SQL query, and each method makes another one of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.table.expression import (
    NO_CONTEXT,
    Aggregate,
    Column,
    Expression,
    FunctionCall,
    SqlContext,
    WindowProperty,
)
from penstock.table.expressions import ColumnSelection
from penstock.table.logical_types import parse_type
from penstock.table.table_descriptor import TableDescriptor
from penstock.table.table_pipeline import TablePipeline
from penstock.table.table_result import TableResult
from penstock.table.table_schema import TableSchema
from penstock.table.types import RowType, quoted
from penstock.table.udf import UserDefinedAggregateFunctionWrapper, UserDefinedFunctionWrapper
from penstock.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    from penstock.table.table_environment import TableEnvironment

__all__ = ["Table", "GroupedTable", "GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable"]


@dataclass(frozen=True)
class _Context(SqlContext):
    """The functions of an environment, and the windows that a table has."""

    t_env: TableEnvironment
    query: str
    group_windows: Mapping[str, GroupWindow] = field(default_factory=dict)
    over_windows: Mapping[str, OverWindow] = field(default_factory=dict)

    def function(self, function: UserDefinedFunctionWrapper) -> str:
        return self.t_env._name_of_function(function)

    def window_property(self, window: str, name: str) -> str:
        if window not in self.group_windows:
            return NO_CONTEXT.window_property(window, name)
        return self.group_windows[window].as_sql(self, name)

    def over(self, window: str) -> str:
        if window not in self.over_windows:
            return NO_CONTEXT.over(window)
        return self.over_windows[window].as_sql(self)

    def field(self, row: str, position: int) -> str:
        (column,) = self.t_env._planner.schema(f"SELECT {row} AS `r` FROM ({self.query})")
        of = parse_type(column["dataType"])
        if not isinstance(of, RowType) or position >= len(of):
            raise InvalidProgramError(f"{row} has no field {position}: it is of type {of.as_sql()}")
        return of.field_names()[position]


def _is_aggregate(expression: Expression[Any]) -> bool:
    """True for what a group has one value of: these share the numbers of their names."""
    if isinstance(expression, FunctionCall):
        return expression.function.form == "aggregate"
    return isinstance(expression, (Aggregate, WindowProperty))


def _checked(fields: Sequence[Any], where: str) -> list[Expression[Any]]:
    for each in fields:
        if not isinstance(each, Expression):
            raise TypeError(f"{where} takes expressions such as col('a'), got {each!r}")
    return list(fields)


class _Selecting:
    """Makes the list after SELECT, with the names that Flink gives to columns without one."""

    def __init__(self, fields: Sequence[Any], context: SqlContext, first: int = 0) -> None:
        self._context = context
        self._first = first
        self._fields = _checked(fields, "select(...)")
        found = [part for each in self._fields for part in each.walk() if _is_aggregate(part)]
        self._aggregates = list(dict.fromkeys(part.as_sql(context) for part in found))

    def items(self, all_names: Sequence[str] = ()) -> list[str]:
        return [item for at, each in enumerate(self._fields) for item in self._item(at, each, all_names)]

    def _item(self, at: int, each: Expression[Any], all_names: Sequence[str]) -> list[str]:
        if isinstance(each, ColumnSelection):
            return [quoted(name) for name in each.columns(list(all_names))]
        text = each.as_sql(self._context)
        if text == "*" or text.endswith(".*"):
            return [text]
        name = each.own_name
        if name is None:
            name = f"EXPR${self._aggregates.index(text)}" if text in self._aggregates else f"_c{self._first + at}"
        return [text if text == quoted(name) else f"{text} AS {quoted(name)}"]


class Table:
    """A table: a query that runs when it is executed, inserted or turned into a stream.

    >>> from penstock.table import EnvironmentSettings, TableEnvironment
    >>> from penstock.table.expressions import col
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> table = t_env.from_elements([(1, "a"), (2, "b")], ["n", "t"])
    >>> list(table.where(col("n") > 1).select(col("t"), (col("n") * 10).alias("tens")).execute().collect())
    [<Row('b', 20)>]
    """

    def __init__(self, query: str, t_env: TableEnvironment, order: str = "", offset: int = 0) -> None:
        self._base = query
        self._order = order
        self._offset = offset
        self._t_env = t_env

    @property
    def _query(self) -> str:
        skipped = f" OFFSET {self._offset} ROWS" if self._offset else ""
        return f"{self._base}{self._order}{skipped}"

    def __str__(self) -> str:
        """A name for the table, which statements can use from now on: `f"SELECT * FROM {table}"`."""
        return self._t_env._register_unnamed(self)

    def __repr__(self) -> str:
        return f"<Table {self._query!r}>"

    def __getattr__(self, name: str) -> Expression[Any]:
        if name.startswith("_") or name not in (names := self._names()):
            known = "" if name.startswith("_") else f"; its columns are {', '.join(names)}"
            raise AttributeError(f"the table has no attribute or column {name!r}{known}")
        return Column(name)

    def _names(self) -> list[str]:
        return self.get_schema().get_field_names()

    def _make(self, query: str) -> Table:
        return Table(query, self._t_env)

    def _context(self) -> _Context:
        return _Context(self._t_env, self._query)

    def _sql(self, expression: Any, where: str) -> str:
        return _checked([expression], f"Table.{where}(...)")[0].as_sql(self._context())

    def _select(self, fields: Sequence[Any], context: SqlContext, tail: str = "") -> Table:
        needs_names = any(isinstance(each, ColumnSelection) for each in fields)
        items = _Selecting(fields, context).items(self._names() if needs_names else ())
        return self._make(f"SELECT {', '.join(items)} FROM ({self._query}){tail}")

    # --- columns and rows --------------------------------------------------------------------------------------------

    def select(self, *fields: Expression[Any]) -> Table:
        """The table with these columns; with aggregates, a table of one row."""
        return self._select(fields, self._context())

    def alias(self, field: str, *fields: str) -> Table:
        """The same table, with other names for its columns."""
        names = (field, *fields)
        old = self._names()
        if len(names) > len(old):
            raise InvalidProgramError(f"Table.alias: {len(names)} names for {len(old)} columns: {', '.join(old)}")
        new = [*names, *old[len(names) :]]
        items = ", ".join(f"{quoted(a)} AS {quoted(b)}" for a, b in zip(old, new, strict=True))
        return self._make(f"SELECT {items} FROM ({self._query})")

    def filter(self, predicate: Expression[bool]) -> Table:
        """The rows for which the condition is true."""
        return self._make(f"SELECT * FROM ({self._query}) WHERE {self._sql(predicate, 'filter')}")

    def where(self, predicate: Expression[bool]) -> Table:
        """The rows for which the condition is true."""
        return self.filter(predicate)

    def distinct(self) -> Table:
        """Each row once."""
        return self._make(f"SELECT DISTINCT * FROM ({self._query})")

    def add_columns(self, *fields: Expression[Any]) -> Table:
        """The table with further columns."""
        named = all(each.own_name is not None for each in _checked(fields, "Table.add_columns(...)"))
        items = _Selecting(fields, self._context(), first=0 if named else len(self._names())).items()
        return self._make(f"SELECT *, {', '.join(items)} FROM ({self._query})")

    def add_or_replace_columns(self, *fields: Expression[Any]) -> Table:
        """The table with further columns; those that have the name of one replace it."""
        new = {each.own_name: each for each in _checked(fields, "Table.add_or_replace_columns(...)")}
        old = self._names()
        kept: list[Expression[Any]] = [new.pop(name, Column(name)) for name in old]
        return self.select(*kept, *new.values())

    def rename_columns(self, *fields: Expression[Any]) -> Table:
        """The table with other names for some columns: `col("a").alias("b")`."""
        renamed = {each.column: each.aliases[0] for each in fields if isinstance(each, Column) and each.aliases}
        if len(renamed) != len(fields):
            raise InvalidProgramError("Table.rename_columns takes columns with an alias: col('a').alias('b')")
        names = self._names()
        self._check_columns(renamed, names, "rename_columns")
        items = ", ".join(f"{quoted(name)} AS {quoted(renamed.get(name, name))}" for name in names)
        return self._make(f"SELECT {items} FROM ({self._query})")

    def drop_columns(self, *fields: Expression[Any]) -> Table:
        """The table without these columns."""
        names = self._names()
        dropped = ColumnSelection(fields, is_inverted=False).columns(names)
        self._check_columns(dropped, names, "drop_columns")
        items = ", ".join(quoted(name) for name in names if name not in dropped)
        return self._make(f"SELECT {items} FROM ({self._query})")

    @staticmethod
    def _check_columns(wanted: Any, names: list[str], where: str) -> None:
        if missing := [name for name in wanted if name not in names]:
            raise InvalidProgramError(
                f"Table.{where}: there is no column {', '.join(map(repr, missing))}; the columns are {', '.join(names)}"
            )

    # --- groups and windows ------------------------------------------------------------------------------------------

    def group_by(self, *fields: Expression[Any]) -> GroupedTable:
        """The rows in groups, for aggregates."""
        return GroupedTable(self, _checked(fields, "Table.group_by(...)"))

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """The rows in windows of time, for `group_by` with the window's alias."""
        if not isinstance(window, GroupWindow):
            raise TypeError(f"Table.window takes a window with an alias, such as Tumble...alias('w'), got {window!r}")
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """For `select` with aggregates over the rows before each row."""
        return OverWindowedTable(self, over_windows)

    # --- several tables ----------------------------------------------------------------------------------------------

    def _join(self, kind: str, right: Table, predicate: Expression[bool] | None) -> Table:
        both = sorted(set(self._names()) & set(right._names()))
        if both:
            raise InvalidProgramError(
                f"join relations with ambiguous names: [{', '.join(both)}]; rename columns of one table: alias(...)"
            )
        if predicate is None:
            return self._make(f"SELECT * FROM ({self._query}) CROSS JOIN ({right._query})")
        condition = self._sql(predicate, "join")
        return self._make(f"SELECT * FROM ({self._query}) {kind} JOIN ({right._query}) ON {condition}")

    def join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """The rows of both tables for which the condition is true."""
        return self._join("INNER", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """As `join`, and the rows of this table that have none in the other one."""
        return self._join("LEFT", right, _needed(join_predicate, "left_outer_join"))

    def right_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """As `join`, and the rows of the other table that have none in this one."""
        return self._join("RIGHT", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """As `join`, and the rows of either table that have none in the other one."""
        return self._join("FULL", right, join_predicate)

    def join_lateral(
        self,
        table_function_call: Expression[Any] | UserDefinedFunctionWrapper,
        join_predicate: Expression[bool] | None = None,
    ) -> Table:
        """Each row, with the rows that a table function gives for it."""
        return self._lateral("INNER JOIN", table_function_call, join_predicate)

    def left_outer_join_lateral(
        self,
        table_function_call: Expression[Any] | UserDefinedFunctionWrapper,
        join_predicate: Expression[bool] | None = None,
    ) -> Table:
        """As `join_lateral`, and the rows for which the function gives none."""
        return self._lateral("LEFT JOIN", table_function_call, join_predicate)

    def _lateral(self, kind: str, function: Any, predicate: Expression[bool] | None) -> Table:
        call, names = self._called(function)
        condition = "TRUE" if predicate is None else self._sql(predicate, "join_lateral")
        columns = f"({', '.join(map(quoted, names))})" if names else ""
        return self._make(f"SELECT * FROM ({self._query}) {kind} LATERAL TABLE({call}) AS `T`{columns} ON {condition}")

    def _called(self, function: Any) -> tuple[str, tuple[str, ...]]:
        """The call of a function as SQL has it, and the names of its columns. A bare function gets the whole row."""
        if isinstance(function, UserDefinedFunctionWrapper):
            schema = self.get_schema()
            whole = ", ".join(map(quoted, schema.get_field_names()))
            argument = f"CAST(ROW({whole}) AS {schema.to_row_data_type().nullable().as_sql()})"
            return f"{self._t_env._name_of_function(function)}({argument})", function._alias_names
        return self._sql(function, "map"), function.aliases

    def _set_operation(self, operator: str, right: Table) -> Table:
        return self._make(f"SELECT * FROM ({self._query}) {operator} SELECT * FROM ({right._query})")

    def union(self, right: Table) -> Table:
        """The rows of either table, each once."""
        return self._set_operation("UNION", right)

    def union_all(self, right: Table) -> Table:
        """The rows of either table."""
        return self._set_operation("UNION ALL", right)

    def intersect(self, right: Table) -> Table:
        """The rows of both tables, each once."""
        return self._set_operation("INTERSECT", right)

    def intersect_all(self, right: Table) -> Table:
        """The rows of both tables, as often as both have them."""
        return self._set_operation("INTERSECT ALL", right)

    def minus(self, right: Table) -> Table:
        """The rows that the other table does not have, each once."""
        return self._set_operation("EXCEPT", right)

    def minus_all(self, right: Table) -> Table:
        """The rows that this table has more often than the other one."""
        return self._set_operation("EXCEPT ALL", right)

    # --- order -------------------------------------------------------------------------------------------------------

    def order_by(self, *fields: Expression[Any]) -> Table:
        """The rows in order; in streaming mode by time, or with `fetch` after it."""
        texts = [each.as_sql(self._context()) for each in _checked(fields, "Table.order_by(...)")]
        return Table(f"SELECT * FROM ({self._query})", self._t_env, f" ORDER BY {', '.join(texts)}")

    def offset(self, offset: int) -> Table:
        """Without the first rows of a table in order."""
        if not self._order:
            return Table(f"SELECT * FROM ({self._query})", self._t_env, " ", offset)
        return Table(self._base, self._t_env, self._order, self._offset + offset)

    def fetch(self, fetch: int) -> Table:
        """The first rows of a table in order."""
        return self._make(
            f"{self._query if self._order else f'SELECT * FROM ({self._query})'} FETCH NEXT {fetch} ROWS ONLY"
        )

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Some rows: `offset` and `fetch` in one."""
        return self.offset(offset).fetch(fetch)

    # --- functions of whole rows -------------------------------------------------------------------------------------

    def map(self, func: Expression[Any] | UserDefinedFunctionWrapper) -> Table:
        """The result of a scalar function for each row; the fields of a row become columns."""
        call, names = self._called(func)
        function = func if isinstance(func, UserDefinedFunctionWrapper) else getattr(func, "function", None)
        of = None if function is None else function.result_type
        if not isinstance(of, RowType):
            name = names[0] if names else "_c0"
            return self._make(f"SELECT {call} AS {quoted(name)} FROM ({self._query})")
        fields = of.field_names()
        named = [*names, *fields[len(names) :]]
        items = ", ".join(f"`r`.{quoted(a)} AS {quoted(b)}" for a, b in zip(fields, named, strict=True))
        return self._make(f"SELECT {items} FROM (SELECT {call} AS `r` FROM ({self._query}))")

    def flat_map(self, func: Expression[Any] | UserDefinedFunctionWrapper) -> Table:
        """The rows that a table function gives for each row."""
        call, names = self._called(func)
        columns = f"({', '.join(map(quoted, names))})" if names else ""
        return self._make(f"SELECT `T`.* FROM ({self._query}), LATERAL TABLE({call}) AS `T`{columns}")

    def aggregate(self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper) -> AggregatedTable:
        """An aggregate function of the whole table, whose fields become columns."""
        return GroupedTable(self, []).aggregate(func)

    def flat_aggregate(self, func: Any) -> Table:
        """Not supported: table aggregate functions."""
        raise UnsupportedFeatureError("Table.flat_aggregate: table aggregate functions are not supported")

    # --- schema and execution ----------------------------------------------------------------------------------------

    def get_schema(self) -> TableSchema:
        """Names and types of the columns."""
        columns = self._t_env._planner.schema(self._query)
        types = [self._t_env._type_of_column(column) for column in columns]
        return TableSchema([column["name"] for column in columns], types)

    def get_resolved_schema(self) -> TableSchema:
        """Names and types of the columns."""
        return self.get_schema()

    def print_schema(self) -> None:
        """Print the names and types of the columns."""
        print(self._t_env._planner.schema_text(self._query))

    def execute(self) -> TableResult:
        """Start a job that gives the rows of the table."""
        return self._t_env._execute_query(self._query)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame, when all of its changes have come."""
        import pandas as pd

        rows: list[list[Any]] = []
        with self.execute().collect() as changes:
            for row in changes:
                if row.get_row_kind().value in (0, 2):
                    rows.append(list(row))
                else:
                    rows.remove(list(row))
        return pd.DataFrame(rows, columns=self._names())

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """The table with the table that it is to be written into; `execute` starts the job."""
        target = self._t_env._path_of(table_path_or_descriptor, self._query)
        verb = "OVERWRITE" if overwrite else "INTO"
        return TablePipeline(f"INSERT {verb} {target} {self._query}", self._t_env)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Start a job that writes the rows into another table."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def explain(self, *extra_details: int) -> str:
        """The plan of the query."""
        return self._t_env._explain([self._query], extra_details)

    def print_explain(self, *extra_details: int) -> None:
        """Print the plan of the query."""
        print(self.explain(*extra_details))


def _needed(predicate: Expression[bool] | None, where: str) -> Expression[bool]:
    if predicate is None:
        from penstock.table.expressions import lit

        return lit(True)
    return predicate


class GroupedTable:
    """Rows in groups: `select` with aggregates makes a table of them.

    >>> from penstock.table import EnvironmentSettings, TableEnvironment
    >>> from penstock.table.expressions import col
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> table = t_env.from_elements([("a", 1), ("b", 2)], ["k", "n"])
    >>> list(table.group_by(col("k")).select(col("k"), col("n").sum).execute().collect())
    [<Row('a', 1)>, <Row('b', 2)>]
    """

    def __init__(self, table: Table, keys: Sequence[Expression[Any]], window: GroupWindow | None = None) -> None:
        computed = [key for key in keys if key.aliases]
        self._table = table.add_columns(*computed) if computed else table
        self._window = window
        windows = {} if window is None else {window.name: window}
        self._context = replace(table._context(), group_windows=windows)
        self._keys = [
            quoted(key.aliases[0]) if key.aliases else key.as_sql(self._context)
            for key in keys
            if window is None or not (isinstance(key, Column) and key.column == window.name)
        ]

    @property
    def _tail(self) -> str:
        windows = [] if self._window is None else [self._window.as_sql(self._context)]
        keys = ", ".join([*windows, *self._keys])
        return f" GROUP BY {keys}" if keys else ""

    def select(self, *fields: Expression[Any]) -> Table:
        """A row for each group: keys, aggregates, and properties of the window."""
        return self._table._select(fields, self._context, self._tail)

    def aggregate(self, func: Expression[Any] | UserDefinedAggregateFunctionWrapper) -> AggregatedTable:
        """An aggregate function of each group, whose fields become columns."""
        call, names = self._table._called(func)
        function = func if isinstance(func, UserDefinedFunctionWrapper) else getattr(func, "function", None)
        keys = "".join(f"{key}, " for key in self._keys)
        query = f"SELECT {keys}{call} AS `r` FROM ({self._table._query}){self._tail}"
        of = None if function is None else function.result_type
        fields = of.field_names() if isinstance(of, RowType) else None
        if fields is None:
            items = f"`r` AS {quoted(names[0] if names else '_c0')}"
        else:
            named = [*names, *fields[len(names) :]]
            items = ", ".join(f"`r`.{quoted(a)} AS {quoted(b)}" for a, b in zip(fields, named, strict=True))
        return AggregatedTable(self._table._make(f"SELECT {keys}{items} FROM ({query})"))

    def flat_aggregate(self, func: Any) -> Table:
        """Not supported: table aggregate functions."""
        raise UnsupportedFeatureError("GroupedTable.flat_aggregate: table aggregate functions are not supported")


class GroupWindowedTable:
    """Rows in windows of time; `group_by` with the window's alias is next.

    >>> from penstock.table.expressions import col, lit
    >>> from penstock.table.window import Tumble
    >>> window = Tumble.over(lit(1).hours).on(col("ts")).alias("w")
    """

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Expression[Any]) -> WindowGroupedTable:
        """The rows in groups: by the window, and by other columns."""
        keys = _checked(fields, "GroupWindowedTable.group_by(...)")
        if not any(isinstance(key, Column) and key.column == self._window.name for key in keys):
            raise InvalidProgramError(
                f"GroupWindowedTable.group_by: the window's alias is missing; add col({self._window.name!r})"
            )
        return WindowGroupedTable(self._table, keys, self._window)


class WindowGroupedTable(GroupedTable):
    """Rows in groups by windows of time: `select` with aggregates makes a table of them.

    >>> issubclass(WindowGroupedTable, GroupedTable)
    True
    """


class OverWindowedTable:
    """Rows with the rows before them: `select` with aggregates over them makes a table.

    >>> from penstock.table.expressions import UNBOUNDED_RANGE, col
    >>> from penstock.table.window import Over
    >>> window = Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")
    """

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table = table
        self._context = replace(table._context(), over_windows={window.name: window for window in windows})

    def select(self, *fields: Expression[Any]) -> Table:
        """The table with these columns: `col("n").sum.over(col("w"))`."""
        return self._table._select(fields, self._context)


class AggregatedTable:
    """The result of an aggregate function for each group; `select` chooses its columns.

    >>> AggregatedTable.__name__
    'AggregatedTable'
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def select(self, *fields: Expression[Any]) -> Table:
        """The table with these columns."""
        return self._table.select(*fields)


def columns_of(columns: Sequence[Mapping[str, Any]]) -> RowType:
    """The columns that the planner describes, as the type of a row."""
    row_type = RowType([])
    for column in columns:
        row_type = row_type.add(column["name"], parse_type(column["dataType"]))
    return row_type
