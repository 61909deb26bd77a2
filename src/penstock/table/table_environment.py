"""Where tables begin: the catalog, SQL statements, and the jobs that they become."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.graph import descriptions as d
from penstock.table import explain_detail
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.compiled_plan import CompiledPlan
from penstock.table.element_types import row_type_of_arrow, row_type_of_elements
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.expression import Column, Expression, WindowProperty, literal_text
from penstock.table.logical_types import internal_converter, parse_type
from penstock.table.materialized import final_rows
from penstock.table.operators import PlanContext, translate
from penstock.table.plan_reference import FilePlanReference, JsonContentPlanReference, PlanReference
from penstock.table.planner.host import Planner, TableException
from penstock.table.schema import Column as SchemaColumn
from penstock.table.schema import Schema
from penstock.table.statement_set import StatementSet
from penstock.table.stream_tables import FromRows, Retractions, ToRows, row_type_of_stream
from penstock.table.table import Table, columns_of
from penstock.table.table_config import TableConfig
from penstock.table.table_descriptor import TableDescriptor
from penstock.table.table_result import Content, TableResult
from penstock.table.types import DataType, LocalZonedTimestampType, RowField, RowType, TimestampType, quoted
from penstock.table.udf import AggregateFunction, UserDefinedFunctionWrapper, udaf
from penstock.table.user_functions import callable_of

__all__ = ["TableEnvironment", "StreamTableEnvironment"]

_OWN = "penstock_unnamed_"
"""How tables are called that exist for a while only; lists leave them out."""
_ZONE = "table.local-time-zone"


class TableEnvironment:
    """Where tables begin: a catalog of tables, views and functions, and statements that use them.

    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'blackhole')").print()
    OK
    >>> t_env.list_tables()
    ['numbers']
    """

    def __init__(self, environment: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        """Use `create`."""
        self._environment = environment
        self._settings = settings
        self._config = TableConfig(environment._configuration)
        self._config.add_configuration(settings.get_configuration())
        self._loaded: Planner | None = None
        self._told: dict[str, str] = {}
        self._streams: dict[str, DataStream[Any]] = {}
        self._functions: dict[str, UserDefinedFunctionWrapper] = {}
        self._unnamed_functions: dict[int, str] = {}
        self._views: dict[int, tuple[Table, str]] = {}
        self._count = 0

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment with these settings."""
        if isinstance(environment_settings, Configuration):
            builder = EnvironmentSettings.new_instance().with_configuration(environment_settings)
            if environment_settings.get_string("execution.runtime-mode", "STREAMING").upper() == "BATCH":
                builder.in_batch_mode()
            environment_settings = builder.build()
        configuration = environment_settings.get_configuration()
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        return TableEnvironment(environment, environment_settings)

    @property
    def _planner(self) -> Planner:
        """The planner, with the settings as they are now. It is started when it is first needed."""
        if self._loaded is None:
            settings = self._settings
            # Batch mode is planned as streaming is, and shows the final rows: the operators are those of streams.
            self._loaded = Planner(True, settings.catalog, settings.database)
            self._set_planner({_ZONE: self._zone})
        self._set_planner(self._config.of_planner())
        return self._loaded

    def _set_planner(self, wanted: Mapping[str, str]) -> None:
        assert self._loaded is not None
        for key in [key for key in self._told if key not in wanted and key != _ZONE]:
            self._loaded.reset(key)
            del self._told[key]
        for key, value in wanted.items():
            if self._told.get(key) != value:
                self._loaded.set(key, value)
                self._told[key] = value

    @property
    def _zone(self) -> str:
        zone = self._config.of_planner().get(_ZONE, "default")
        return _zone_of_machine() if zone == "default" else zone

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{_OWN}{what}_{self._count}"

    # --- catalog -----------------------------------------------------------------------------------------------------

    def get_config(self) -> TableConfig:
        """The settings."""
        return self._config

    def from_path(self, path: str) -> Table:
        """A table or view of the catalog, by its path: `table`, `database.table` or `catalog.database.table`."""
        self._planner.table(path)
        return Table(f"SELECT * FROM {_quoted_path(path)}", self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table that is described here, without a name in the catalog."""
        name = self._new_name("table")
        self.create_temporary_table(name, descriptor)
        return self.from_path(name)

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool | None = False
    ) -> None:
        """Name a table, for this environment."""
        self._create("TEMPORARY TABLE", path, descriptor, ignoreIfExists)

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool | None = False) -> None:
        """Name a table in the catalog."""
        self._create("TABLE", path, descriptor, ignoreIfExists)

    def _create(self, what: str, path: str, descriptor: TableDescriptor, ignore: bool | None) -> None:
        if not isinstance(descriptor, TableDescriptor):
            raise TypeError(
                f"table {path!r} needs a descriptor, TableDescriptor.for_connector(...), got {descriptor!r}"
            )
        self._planner.execute(descriptor.as_sql(_quoted_path(path), f"{what}{' IF NOT EXISTS' if ignore else ''}"))

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Name a query, for this environment."""
        self._create_view("TEMPORARY VIEW", view_path, self._as_table(table_or_data_stream, *fields_or_schema))

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool | None = False) -> None:
        """Name a query in the catalog."""
        self._create_view(f"VIEW{' IF NOT EXISTS' if ignore_if_exists else ''}", view_path, self._as_table(table))

    def _as_table(self, table: Any, *fields_or_schema: Any) -> Table:
        if not isinstance(table, Table):
            raise TypeError(f"a view is made of a table, got {table!r}")
        return table

    def _create_view(self, what: str, path: str, table: Table) -> None:
        self._planner.execute(f"CREATE {what} {_quoted_path(path)} AS {table._query}")

    def _register_unnamed(self, table: Table) -> str:
        """A name by which statements can use a table."""
        known = self._views.get(id(table))
        if known is None:
            name = f"UnnamedTable${len(self._views)}"
            self._create_view("TEMPORARY VIEW", name, table)
            known = self._views[id(table)] = (table, name)  # The table stays, so that its id is not given away.
        return quoted(known[1])

    def drop_temporary_table(self, table_path: str) -> bool:
        """Remove a temporary table; False if there is none."""
        return self._planner.drop_temporary("table", table_path)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Remove a temporary view; False if there is none."""
        return self._planner.drop_temporary("view", view_path)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Remove a table of the catalog; False if there is none."""
        return self._drop("TABLE", table_path, ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Remove a view of the catalog; False if there is none."""
        return self._drop("VIEW", view_path, ignore_if_not_exists)

    def _drop(self, what: str, path: str, ignore_if_not_exists: bool | None) -> bool:
        try:
            self._planner.table(path)
        except TableException:
            if not ignore_if_not_exists:
                raise
            return False
        self._planner.execute(f"DROP {what} {_quoted_path(path)}")
        return True

    def list_catalogs(self) -> list[str]:
        """The names of all catalogs."""
        return self._planner.names("catalogs")

    def list_databases(self) -> list[str]:
        """The names of the current catalog's databases."""
        return self._planner.names("databases")

    def list_tables(self) -> list[str]:
        """The names of the current database's tables and views, temporary ones too."""
        return self._listed("tables")

    def list_views(self) -> list[str]:
        """The names of the current database's views, temporary ones too."""
        return self._listed("views")

    def list_temporary_tables(self) -> list[str]:
        """The names of temporary tables and views."""
        return self._listed("temporary tables")

    def list_temporary_views(self) -> list[str]:
        """The names of temporary views."""
        return self._listed("temporary views")

    def list_user_defined_functions(self) -> list[str]:
        """The names of users' functions."""
        return self._listed("user functions")

    def list_functions(self) -> list[str]:
        """The names of all functions."""
        return self._listed("functions")

    def _listed(self, what: str) -> list[str]:
        return [name for name in self._planner.names(what) if not name.startswith(_OWN)]

    def get_current_catalog(self) -> str:
        """The name of the current catalog."""
        return self._planner.names("current")[0]

    def get_current_database(self) -> str:
        """The name of the current database."""
        return self._planner.names("current")[1]

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog the current one."""
        self._planner.execute(f"USE CATALOG {quoted(catalog_name)}")

    def use_database(self, database_name: str) -> None:
        """Make a database of the current catalog the current one."""
        self._planner.execute(f"USE {quoted(database_name)}")

    def create_catalog(self, catalog_name: str, catalog_descriptor: Any) -> None:
        """Create a catalog, by the options of its descriptor. Only catalogs in memory are supported."""
        options = ", ".join(
            f"{literal_text(key)} = {literal_text(value)}"
            for key, value in catalog_descriptor.get_configuration().to_dict().items()
        )
        self._planner.execute(f"CREATE CATALOG {quoted(catalog_name)} WITH ({options})")

    def register_catalog(self, catalog_name: str, catalog: Any) -> None:
        """Not supported: catalogs are created by statements."""
        raise UnsupportedFeatureError("register_catalog(...): create catalogs with CREATE CATALOG")

    def get_catalog(self, catalog_name: str) -> Any:
        """Not supported: catalogs are asked by statements."""
        raise UnsupportedFeatureError("get_catalog(...): ask catalogs with SHOW and DESCRIBE statements")

    def load_module(self, module_name: str, module: Any) -> None:
        """Not supported: there is only Flink's own module of functions."""
        raise UnsupportedFeatureError("load_module(...): modules other than Flink's own are not supported")

    def list_modules(self) -> list[str]:
        """The modules that functions come from."""
        return ["core"]

    # --- functions ---------------------------------------------------------------------------------------------------

    def create_temporary_system_function(
        self, name: str, function: UserDefinedFunctionWrapper | AggregateFunction
    ) -> None:
        """Name a function for all statements of this environment.

        >>> from penstock.table.udf import udf
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.create_temporary_system_function("twice", udf(lambda n: n * 2, result_type="INT"))
        >>> list(t_env.execute_sql("SELECT twice(21)").collect())
        [<Row(42)>]
        """
        self._declare(name, function, is_of_system=True)

    def create_temporary_function(self, path: str, function: UserDefinedFunctionWrapper | AggregateFunction) -> None:
        """Name a function in a database, for this environment."""
        self._declare(path, function, is_of_system=False)

    def _declare(self, name: str, function: Any, is_of_system: bool) -> None:
        wrapped = udaf(function) if isinstance(function, AggregateFunction) else function
        if not isinstance(wrapped, UserDefinedFunctionWrapper):
            raise TypeError(f"function {name!r} must be made by udf(...), udtf(...) or udaf(...), got {function!r}")
        inputs = None if wrapped.input_types is None else [each.as_sql() for each in wrapped.input_types]
        result = wrapped.result_type.as_sql()
        accumulator = "BYTES" if wrapped.form == "aggregate" else None  # Accumulators stay with Python.
        self._planner.declare(wrapped.form, name, inputs, result, accumulator, wrapped.is_deterministic, is_of_system)
        self._functions[name.rpartition(".")[2].strip("`").lower()] = wrapped

    def drop_temporary_system_function(self, name: str) -> bool:
        """Remove a function; False if there is none."""
        return self._planner.drop_temporary("system function", name)

    def drop_temporary_function(self, path: str) -> bool:
        """Remove a function of a database; False if there is none."""
        return self._planner.drop_temporary("function", path)

    def drop_function(self, path: str) -> bool:
        """Remove a function of the catalog; False if there is none."""
        name = path.rpartition(".")[2].strip("`").lower()
        is_there = name in self._planner.names("user functions")
        self._planner.execute(f"DROP FUNCTION IF EXISTS {_quoted_path(path)}")
        return is_there

    def create_java_temporary_system_function(self, name: str, function_class_name: str) -> None:
        """Not supported: functions in Java."""
        raise UnsupportedFeatureError(f"function {name!r}: functions in Java cannot run here; write it in Python")

    def create_java_function(self, path: str, function_class_name: str, ignore_if_exists: bool | None = None) -> None:
        """Not supported: functions in Java."""
        raise UnsupportedFeatureError(f"function {path!r}: functions in Java cannot run here; write it in Python")

    def create_java_temporary_function(self, path: str, function_class_name: str) -> None:
        """Not supported: functions in Java."""
        raise UnsupportedFeatureError(f"function {path!r}: functions in Java cannot run here; write it in Python")

    def _name_of_function(self, function: UserDefinedFunctionWrapper) -> str:
        """The name of a function that an expression calls without one."""
        name = self._unnamed_functions.get(id(function))
        if name is None:
            name = self._new_name("function")
            self.create_temporary_system_function(name, function)
            self._unnamed_functions[id(function)] = name
        return quoted(name)

    def _create_python_function(self, answer: Mapping[str, Any]) -> None:
        """CREATE FUNCTION ... LANGUAGE PYTHON: the function is imported, and made known by its types."""
        if answer["exists"] and answer["ignoreIfExists"]:
            return
        module, _, name = answer["class"].rpartition(".")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidProgramError(
                f"CREATE FUNCTION {answer['name']}: there is no function {answer['class']!r}: {error}; name a function "
                f"that udf(...), udtf(...) or udaf(...) has made, with its module"
            ) from error
        self._declare(answer["name"], function, answer["ofSystem"])

    # --- statements --------------------------------------------------------------------------------------------------

    def sql_query(self, query: str) -> Table:
        """The table that a SELECT statement describes. It is checked at once."""
        text = query.strip().rstrip(";")
        self._planner.schema(text)
        return Table(text, self)

    def execute_sql(self, stmt: str) -> TableResult:
        """Run a statement. One that starts a job returns at once: see `TableResult.wait`."""
        answer = self._planner.execute(stmt.strip().rstrip(";"))
        match answer["kind"]:
            case "insert":
                return self._start_inserts(answer)
            case "query":
                return self._start_query(answer)
            case "plan":
                return self._execute_plan(json.loads(Path(answer["file"].removeprefix("file:")).read_text("utf-8")))
            case "set":
                if answer["key"] is None:
                    return _settings(self._config.to_map())
                self._config.set(answer["key"], answer["value"])
            case "reset":
                self._config.reset(answer["key"])
            case "function":
                self._create_python_function(answer)
            case _:
                return self._shown(answer)
        return _ok()

    def _shown(self, answer: Mapping[str, Any]) -> TableResult:
        row_type = columns_of(answer["columns"])
        rows = [row for row in answer["rows"] if not (len(row) == 1 and str(row[0]).startswith(_OWN))]
        if answer["resultKind"] == "SUCCESS":
            return _ok()
        look = "raw" if answer["operation"] == "ExplainOperation" else "fitted"
        return TableResult([(0, row) for row in rows], Content(row_type, self._zone, look))

    def explain_sql(self, stmt: str, *extra_details: int) -> str:
        """The plan of a statement."""
        return self._explain([stmt], extra_details)

    def _explain(self, statements: Sequence[str], details: Sequence[int]) -> str:
        return self._planner.explain(statements, [explain_detail.NAMES[detail] for detail in details])

    def create_statement_set(self) -> StatementSet:
        """For several INSERT statements that are to be one job."""
        return StatementSet(self)

    def _check_insert(self, statement: str) -> None:
        self._planner.compile([statement])

    def _path_of(self, target: str | TableDescriptor, query: str) -> str:
        if isinstance(target, str):
            return _quoted_path(target)
        if target.table_schema is None:
            row_type = columns_of(self._planner.schema(query))
            schema = Schema.new_builder().from_row_data_type(row_type).build()
            target = TableDescriptor(target.options, schema, target.partition_keys, target.text)
        name = self._new_name("sink")
        self.create_temporary_table(name, target)
        return quoted(name)

    # --- plans -------------------------------------------------------------------------------------------------------

    def _compile(self, statements: Sequence[str]) -> CompiledPlan:
        return CompiledPlan(self._planner.compile(statements)["plan"], self)

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """The plan of an INSERT statement, which can be kept and executed later."""
        return self._compile([stmt.strip().rstrip(";")])

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """A plan that was kept."""
        match plan_reference:
            case FilePlanReference(path=path):
                return CompiledPlan(path.read_text(encoding="utf-8"), self)
            case JsonContentPlanReference(content=content):
                return CompiledPlan(content, self)
        raise TypeError(
            f"load_plan takes PlanReference.from_file(...) or from_json_string(...), got {plan_reference!r}"
        )

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Start the job of a plan that was kept."""
        return self.load_plan(plan_reference).execute()

    # --- jobs --------------------------------------------------------------------------------------------------------

    def _plan_context(self) -> PlanContext:
        config = {**self._config.to_map(), _ZONE: self._zone}
        functions = {name: callable_of(function) for name, function in self._functions.items()}
        return PlanContext(config, functions, self._planner.table, self._streams)

    def _translate(self, plan: str | Mapping[str, Any]) -> list[Any]:
        return translate(plan, self._environment, self._plan_context())

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """What is built inside is no part of the job that `env.execute()` starts."""
        environment = self._environment
        kept, environment._transformations = environment._transformations, []
        try:
            yield
        finally:
            environment._transformations = kept

    def _job_name(self, usual: str) -> str | None:
        return None if self._environment._configuration.contains_key(keys.JOB_NAME.key) else usual

    def _execute_inserts(self, statements: Sequence[str]) -> TableResult:
        return self._start_inserts(self._planner.compile(statements))

    def _start_inserts(self, answer: Mapping[str, Any]) -> TableResult:
        return self._start_sinks(answer["plan"], answer["sinks"])

    def _start_sinks(self, plan: str | Mapping[str, Any], sinks: Sequence[str]) -> TableResult:
        with self._apart():
            self._translate(plan)
            client = self._environment._submit(self._job_name(f"insert-into_{','.join(sinks)}")).client
        row_type = RowType([RowField(name, parse_type("BIGINT")) for name in sinks])
        return TableResult([(0, [-1] * len(sinks))], Content(row_type, look="raw"), client)

    def _execute_plan(self, plan: Mapping[str, Any]) -> TableResult:
        found = [node["dynamicTableSink"]["table"] for node in plan["nodes"] if "dynamicTableSink" in node]
        return self._start_sinks(plan, [table.get("identifier", "*anonymous*").replace("`", "") for table in found])

    def _attach(self, statements: Sequence[str]) -> None:
        self._translate(self._planner.compile(statements)["plan"])

    def _execute_query(self, query: str) -> TableResult:
        return self._start_query(self._planner.query(query))

    def _start_query(self, answer: Mapping[str, Any]) -> TableResult:
        with self._apart():
            (sink,) = self._translate(answer["plan"])
            collect_id = f"collect-{self._environment._next_id()}"
            sink.stream._sink("Collect table sink", d.CollectSinkDescription(collect_id)).set_parallelism(1)
            submission = self._environment._submit(self._job_name("collect"))
        values, end = submission.collect(collect_id)
        rows: Iterable[tuple[int, Sequence[Any]]] = (
            ((row[-1], row[:-1]) for row in values) if sink.is_changelog else ((0, row) for row in values)
        )
        is_streaming = self._settings.is_streaming
        row_type = columns_of(answer["columns"])
        content = Content(row_type, self._zone, "typed", with_kind=is_streaming)
        return TableResult(rows if is_streaming else final_rows(rows), content, submission.client, end)

    # --- tables of values --------------------------------------------------------------------------------------------

    def from_elements(
        self, elements: Iterable[Any], schema: DataType | Sequence[str] | None = None, verify_schema: bool = True
    ) -> Table:
        """A table of Python values; with the names of its columns, or its whole type.

        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.from_elements([(1, "a"), (2, "b")], ["n", "t"]).print_schema()
        (
          `n` BIGINT,
          `t` STRING
        )
        """
        rows = list(elements)
        if isinstance(schema, RowType):
            row_type = schema
        elif isinstance(schema, DataType):
            row_type = RowType([RowField("value", schema)])
        else:
            row_type = row_type_of_elements(rows, None if schema is None else list(schema))
        is_single = bool(rows) and not isinstance(rows[0], (tuple, list, Mapping)) and not hasattr(rows[0], "_values")
        convert = internal_converter(row_type, self._zone) or tuple
        internal = [convert((row,) if is_single else row) for row in rows]
        stream = self._environment.from_collection(internal)
        return self._table_of_stream(stream, Schema.new_builder().from_row_data_type(row_type).build(), bounded=True)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """A table of a pandas DataFrame."""
        import pyarrow as pa

        data = pa.Table.from_pandas(pdf, preserve_index=False)
        if isinstance(schema, RowType):
            row_type = schema
        else:
            row_type = row_type_of_arrow(data.schema)
            if schema is not None:
                pairs = zip(schema, row_type.field_types(), strict=True)
                if all(isinstance(each, DataType) for each in schema):
                    named = zip(row_type.field_names(), schema, strict=True)
                    row_type = RowType([RowField(name, of) for name, of in named])
                else:
                    row_type = RowType([RowField(name, of) for name, of in pairs])
        columns = [column.to_pylist() for column in data.columns]
        return self.from_elements(list(zip(*columns, strict=True)), row_type)

    def _table_of_stream(
        self, stream: DataStream[Any], schema: Schema, changes: str = "insert", bounded: bool = False
    ) -> Table:
        """A table of a stream of internal rows."""
        name = self._new_name("stream")
        self._streams[name] = stream
        options = {
            "connector": "penstock-stream",
            "stream": name,
            "penstock.changelog": changes,
            "penstock.bounded": "true" if bounded else "false",
        }
        self._planner.execute(TableDescriptor(options, schema).as_sql(quoted(name), "TEMPORARY TABLE"))
        return Table(f"SELECT * FROM {quoted(name)}", self)

    @staticmethod
    def _type_of_column(column: Mapping[str, Any]) -> DataType:
        found = parse_type(column["dataType"])
        kind = column.get("timeAttribute")
        if kind is not None:
            assert isinstance(found, (TimestampType, LocalZonedTimestampType))
            found = type(found)(found.precision, found.is_nullable, kind)
        return found

    # --- dependencies ------------------------------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Send a Python file, or a folder of them, along with jobs."""
        self._environment.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Packages that jobs need, from a requirements file."""
        self._environment.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Send an archive along with jobs, which is unpacked in their working folder."""
        self._environment.add_python_archive(archive_path, target_dir)


class StreamTableEnvironment(TableEnvironment):
    """A table environment on a stream environment: tables become streams, and streams tables.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> t_env = StreamTableEnvironment.create(env)
    >>> table = t_env.from_elements([(1, "a")], ["n", "t"])
    >>> list(t_env.to_data_stream(table).map(lambda row: row.n + 1).execute_and_collect())
    [2]
    """

    @staticmethod
    def create(  # type: ignore[override]  # PyFlink's has other parameters than its base, too.
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """An environment for tables whose jobs are those of the stream environment."""
        if isinstance(stream_execution_environment, EnvironmentSettings):
            stream_execution_environment, environment_settings = None, stream_execution_environment
        settings = environment_settings or EnvironmentSettings.in_streaming_mode()
        environment = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(environment, settings)

    def from_data_stream(self, data_stream: DataStream[Any], *fields_or_schema: Expression[Any] | Schema) -> Table:
        """The elements of a stream as rows: by a schema, or by the columns to take.

        >>> from penstock.common import Types
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> t_env = StreamTableEnvironment.create(env)
        >>> stream = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
        >>> list(t_env.from_data_stream(stream).alias("t", "n").execute().collect())
        [<Row('a', 1)>]
        """
        schema = self._schema_of(data_stream, fields_or_schema)
        return self._from_stream(data_stream, schema, "insert")

    def from_changelog_stream(
        self,
        data_stream: DataStream[Any],
        schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> Table:
        """The rows of a stream as changes of a table, by their kinds."""
        changes = (changelog_mode or ChangelogMode.all()).changes
        return self._from_stream(
            data_stream, self._schema_of(data_stream, () if schema is None else (schema,)), changes
        )

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Name a query or a stream, for this environment."""
        super().create_temporary_view(view_path, table_or_data_stream, *fields_or_schema)

    def _as_table(self, table: Any, *fields_or_schema: Any) -> Table:
        if isinstance(table, DataStream):
            return self.from_data_stream(table, *fields_or_schema)
        return super()._as_table(table)

    def _schema_of(self, stream: DataStream[Any], given: Sequence[Any]) -> Schema:
        own = _columns_of_stream(stream)
        if not given:
            return Schema.new_builder().from_row_data_type(own).build()
        if len(given) == 1 and isinstance(given[0], Schema):
            schema = given[0]
            if any(column.is_physical for column in schema.columns):
                return schema
            return Schema.new_builder().from_row_data_type(own).from_schema(schema).build()
        if not all(isinstance(each, Expression) for each in given):
            raise ValueError(f"from_data_stream takes a Schema, or columns such as col('a'), got {given!r}")
        return _schema_of_fields(own, given)

    def _from_stream(self, stream: DataStream[Any], schema: Schema, changes: str) -> Table:
        own = _columns_of_stream(stream)
        names = own.field_names()
        declared = [column.name for column in schema.columns]
        if any(column.is_physical and column.name in names for column in schema.columns):
            # Expressions may use fields of the stream that are no columns of the table.
            hidden = [field for field in own if field.name not in declared]
            schema = Schema.new_builder().from_row_data_type(RowType(hidden)).from_schema(schema).build()
        physical = [column for column in schema.columns if column.is_physical]
        sources = [column.name if column.name in names else None for column in physical]
        if None in sources:  # By position: the table has its own names.
            if len(physical) > len(names):
                raise InvalidProgramError(
                    f"from_data_stream: the columns {[column.name for column in physical]} do not fit the stream, "
                    f"whose fields are {names}"
                )
            positions = tuple(range(len(physical)))
        else:
            positions = tuple(names.index(column.name) for column in physical)
        row_type = RowType([RowField(column.name, parse_type(str(column.data_type))) for column in physical])
        metadata = [column.metadata_key or column.name for column in schema.columns if column.is_metadata]
        if metadata not in ([], ["rowtime"]):
            raise InvalidProgramError(f"from_data_stream: a stream has only the metadata 'rowtime', got {metadata}")
        is_single = not isinstance(stream.transformation.output_type, (RowTypeInfo, TupleTypeInfo))
        function = ToRows(
            row_type,
            self._zone,
            is_single,
            None if positions == tuple(range(len(names))) else positions,
            with_rowtime=bool(metadata),
            with_kind=changes != "insert",
        )
        with self._apart():
            rows = stream.process(function).name("Rows of the stream")
        table = self._table_of_stream(rows, schema, changes)
        if len(declared) == len(schema.columns):
            return table
        return Table(f"SELECT {', '.join(map(quoted, declared))} FROM ({table._query})", self)

    def to_data_stream(self, table: Table) -> DataStream[Any]:
        """The rows of a table that are only added, as a stream of `Row`."""
        return self._stream_of(table, "insert")

    def to_changelog_stream(
        self,
        table: Table,
        target_schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> DataStream[Any]:
        """The changes of a table, as a stream of `Row` with their kinds."""
        if target_schema is not None and target_schema.columns:
            raise UnsupportedFeatureError(
                "to_changelog_stream: a target schema is not supported; cast the columns in a query before"
            )
        return self._stream_of(table, "all" if changelog_mode is None else changelog_mode.changes)

    def to_append_stream(self, table: Table, type_info: TypeInformation | None = None) -> DataStream[Any]:
        """The rows of a table that are only added, as a stream of `Row`."""
        return self._stream_of(table, "insert")

    def to_retract_stream(self, table: Table, type_info: TypeInformation | None = None) -> DataStream[Any]:
        """The changes of a table, as pairs: True to add a row, False to remove one."""
        return self._stream_of(table, "all").flat_map(Retractions())

    def _stream_of(self, table: Table, changes: str) -> DataStream[Any]:
        answer = self._planner.query(table._query, changes)
        (sink,) = self._translate(answer["plan"])
        row_type = columns_of(answer["columns"])
        function = FromRows(row_type, self._zone, sink.is_changelog)
        stream: DataStream[Any] = sink.stream.map(function).name("Rows of the table")
        return stream


def _columns_of_stream(stream: DataStream[Any]) -> RowType:
    type_info = stream.transformation.output_type
    if type_info is None:
        raise InvalidProgramError(
            f"from_data_stream: the type of the stream behind '{stream.get_name()}' is not known; give its last "
            f"function an output_type, such as Types.ROW_NAMED(['a'], [Types.INT()])"
        )
    return row_type_of_stream(type_info)


def _schema_of_fields(own: RowType, fields: Sequence[Expression[Any]]) -> Schema:
    """A schema of columns as expressions: by name if one of them is a field of the stream, else by position."""
    names = own.field_names()
    builder = Schema.new_builder()
    plain = [each for each in fields if not isinstance(each, WindowProperty)]
    by_name = any(isinstance(each, Column) and each.column in names for each in plain)
    types = dict(zip(names, own.field_types(), strict=True))
    for at, each in enumerate(fields):
        if isinstance(each, WindowProperty):
            _add_time(builder, each)
        elif not isinstance(each, Column):
            raise InvalidProgramError(f"from_data_stream: columns are named by col(...), got {each}")
        elif not by_name:
            builder.column(each.column, own.field_types()[at])
        elif each.column in types and not each.aliases:
            builder.column(each.column, types[each.column])
        else:
            raise UnsupportedFeatureError(
                f"from_data_stream: the column {each} is renamed; take it by its name, and rename it with alias(...)"
            )
    return builder.build()


def _add_time(builder: Any, each: WindowProperty) -> None:
    assert isinstance(each.window, Column)
    name = each.window.column
    if each.what == "ROWTIME":
        builder._columns.append(SchemaColumn(name, "TIMESTAMP(3)", None, True, "rowtime", True))
        builder.watermark(name, "SOURCE_WATERMARK()")
    elif each.what == "PROCTIME":
        builder.column_by_expression(name, "PROCTIME()")
    else:
        raise InvalidProgramError(f"from_data_stream: {name} can be a rowtime or a proctime")


def _quoted_path(path: str) -> str:
    """A path as SQL has it; what has quotes already stays as it is."""
    return path if "`" in path else ".".join(map(quoted, path.split(".")))


def _ok() -> TableResult:
    return TableResult([(0, ["OK"])], Content(RowType([RowField("result", parse_type("STRING"))]), look="ok"))


def _settings(settings: Mapping[str, str]) -> TableResult:
    row_type = RowType([RowField(name, parse_type("STRING")) for name in ("key", "value")])
    return TableResult([(0, list(pair)) for pair in sorted(settings.items())], Content(row_type))


def _zone_of_machine() -> str:
    """The time zone of this machine, by its name."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    target = os.path.realpath("/etc/localtime")
    _, found, zone = target.partition("zoneinfo/")
    return zone if found else "UTC"
