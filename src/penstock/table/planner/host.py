"""Flink's planner as a library: SQL in, compiled plans out. Nothing of Flink's runs the plans."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.common.exceptions import EnvironmentSetupError, InvalidProgramError, UnsupportedFeatureError

_HERE = Path(__file__).parent
_DISTRIBUTION = "apache-flink-libraries"
_JARS = (
    "flink-dist",
    "flink-table-api-java-uber",
    "flink-table-planner-loader",
    "flink-table-runtime",
    "flink-cep",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j-impl",
)
#: What we settle for every environment: plans say everything, aggregates have one phase, and as before Flink 2.3 a sink
#: whose key is not the query's is no error.
_SETTINGS = {
    "table.plan.compile.catalog-objects": "ALL",
    "table.optimizer.agg-phase-strategy": "ONE_PHASE",
    "table.exec.sink.require-on-conflict": "false",
}


class TableException(InvalidProgramError):
    """A statement that Flink's planner refuses, with its words."""


def flink_jars() -> list[Path]:
    """The jars of Flink's planner; they come with the package `apache-flink-libraries`, which is not imported."""
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentSetupError(
            "tables and SQL need Flink's planner, which is not installed; install it with pip install 'penstock[table]'"
        ) from None
    jars = [Path(str(file.locate())) for file in files if file.name.endswith(".jar")]
    found = [next((jar for jar in jars if re.fullmatch(rf"{name}-\d.*\.jar", jar.name)), None) for name in _JARS]
    missing = [name for name, jar in zip(_JARS, found, strict=True) if jar is None or not jar.exists()]
    if missing:
        raise EnvironmentSetupError(
            f"{_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)} has no {', '.join(missing)}; Penstock needs "
            f"version 2.3: pip install 'penstock[table]'"
        )
    return [jar for jar in found if jar is not None]


class Planner:
    """The catalog and the planner of one table environment."""

    def __init__(self, is_streaming: bool, catalog: str, database: str) -> None:
        # Here, because a program that has no tables needs neither PySpark nor Java for its types and functions.
        from penstock.spark.planner_java import planner_java

        jars = flink_jars()
        java = self._java = planner_java()
        planner_class = java.load([_HERE / "logging", *jars], _HERE / "java", "penstock.planner.Planner")
        self._planner = java.create(planner_class, is_streaming, catalog, database)
        for key, value in _SETTINGS.items():
            self.set(key, value)

    def set(self, key: str, value: str) -> None:
        self._call(self._planner.set, key, value)

    def reset(self, key: str) -> None:
        self._call(self._planner.reset, key)

    def execute(self, statement: str) -> dict[str, Any]:
        """The rows of a statement that runs no job; the plan of one that does. `kind` says which it is."""
        answer: dict[str, Any] = json.loads(self._call(self._planner.execute, statement))
        return answer

    def query(self, query: str, changes: str = "requested") -> dict[str, Any]:
        """The plan of a query. `changes`: what its rows may be: insert, upsert, all, or requested (whatever comes)."""
        answer: dict[str, Any] = json.loads(self._call(self._planner.query, query, changes))
        return answer

    def compile(self, inserts: Sequence[str]) -> dict[str, Any]:
        """The plan of several INSERT statements, as one job."""
        answer: dict[str, Any] = json.loads(self._call(self._planner.compile, self._java.texts(inserts)))
        return answer

    def explain(self, statements: Sequence[str], details: Sequence[str] = ()) -> str:
        texts = self._java.texts
        return str(self._call(self._planner.explain, texts(statements), texts(details)))

    def schema(self, query: str) -> list[dict[str, Any]]:
        """The columns of a query: name, dataType, timeAttribute."""
        columns: list[dict[str, Any]] = json.loads(self._call(self._planner.schema, query))
        return columns

    def schema_text(self, query: str) -> str:
        return str(self._call(self._planner.schemaText, query))

    def table(self, path: str) -> dict[str, Any]:
        """A table by its path: columns, primary key, options."""
        answer: dict[str, Any] = json.loads(self._call(self._planner.table, path))
        return answer

    def declare(
        self,
        form: str,
        name: str,
        inputs: Sequence[str] | None,
        result: str,
        accumulator: str | None = None,
        is_deterministic: bool = True,
        is_of_system: bool = True,
    ) -> None:
        """Make a Python function known by its types; plans call it by its name. `form`: scalar, table or aggregate."""
        types = None if inputs is None else self._java.texts(inputs)
        planner = self._planner
        self._call(planner.declare, form, name, types, result, accumulator, is_deterministic, is_of_system)

    def names(self, what: str) -> list[str]:
        """Names of catalogs, databases, tables, views, functions, user functions, temporary tables or views."""
        return list(self._call(self._planner.names, what))

    def drop_temporary(self, what: str, path: str) -> bool:
        """Remove a table, view, function or system function that is temporary; False if there is none."""
        return bool(self._call(self._planner.dropTemporary, what, path))

    def close(self) -> None:
        self._planner.close()

    def _call(self, method: Any, *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except Exception as error:
            from penstock.spark.planner_java import java_failure

            failure = java_failure(error)
            if failure is None:
                raise
            kind, message = failure
            if kind == "UnsupportedOperationException":
                raise UnsupportedFeatureError(f"tables: {message}") from None
            raise TableException(message or kind) from None
