"""PyFlink's Table API and Flink SQL: Flink's own planner makes the plans, and Penstock's operators run them."""

from __future__ import annotations

from penstock.table.changelog_mode import ChangelogMode
from penstock.table.compiled_plan import CompiledPlan
from penstock.table.data_view import DataView, ListView, MapView
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.explain_detail import ExplainDetail
from penstock.table.expression import Expression
from penstock.table.plan_reference import PlanReference
from penstock.table.result_kind import ResultKind
from penstock.table.schema import Schema
from penstock.table.sql_dialect import SqlDialect
from penstock.table.statement_set import StatementSet
from penstock.table.table import (
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    Table,
    WindowGroupedTable,
)
from penstock.table.table_config import TableConfig
from penstock.table.table_descriptor import FormatDescriptor, TableDescriptor
from penstock.table.table_environment import StreamTableEnvironment, TableEnvironment
from penstock.table.table_pipeline import TablePipeline
from penstock.table.table_result import TableResult
from penstock.table.table_schema import TableSchema
from penstock.table.types import DataTypes, Row, RowKind, UserDefinedType
from penstock.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
)

__all__ = [
    "TableEnvironment",
    "StreamTableEnvironment",
    "Table",
    "StatementSet",
    "EnvironmentSettings",
    "TableConfig",
    "GroupedTable",
    "GroupWindowedTable",
    "OverWindowedTable",
    "WindowGroupedTable",
    "ScalarFunction",
    "TableFunction",
    "AggregateFunction",
    "TableAggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "DataView",
    "ListView",
    "MapView",
    "TableDescriptor",
    "FormatDescriptor",
    "Schema",
    "SqlDialect",
    "DataTypes",
    "UserDefinedType",
    "Expression",
    "TableSchema",
    "TableResult",
    "Row",
    "RowKind",
    "ChangelogMode",
    "ExplainDetail",
    "ResultKind",
    "CompiledPlan",
    "PlanReference",
    "TablePipeline",
]
