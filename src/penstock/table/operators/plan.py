"""What a plan consists of while it becomes a graph: nodes, streams of rows, and what nodes are translated with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.data_stream import DataStream
from penstock.graph import descriptions as d
from penstock.table.codegen.compiler import ExpressionContext, system_time_ms
from penstock.table.durations import duration_ms
from penstock.table.logical_types import row_type_of
from penstock.table.rows import KeyOf
from penstock.table.type_infos import internal_type_info
from penstock.table.types import RowType

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

_ZONE = "table.local-time-zone"


@dataclass(frozen=True)
class ExecNode:
    """One node of the plan. `kind` is its type without `stream-exec-` and version, such as `group-aggregate`."""

    position: int
    kind: str
    version: int
    json: Mapping[str, Any]

    @cached_property
    def row_type(self) -> RowType:
        return row_type_of(self.json["outputType"])

    @property
    def description(self) -> str:
        return str(self.json.get("description", self.kind))

    def __getitem__(self, name: str) -> Any:
        return self.json[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.json.get(name, otherwise)

    def state_ttl_ms(self, index: int = 0) -> int:
        """How long the node's state lives after it was last written; 0 is for ever."""
        for state in self.get("state") or ():
            if state["index"] == index:
                return duration_ms(state["ttl"])
        return 0

    def unsupported(self, what: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"tables: {what} is not supported; needed by {self.description}")


@dataclass(frozen=True)
class TableStream:
    """A stream of rows. `is_changelog`: each row has its kind as one more item at the end."""

    stream: DataStream
    row_type: RowType
    is_changelog: bool = False

    def keyed(self, columns: Sequence[int]) -> Any:
        return self.stream.key_by(KeyOf.of(self.row_type, columns))


@dataclass(frozen=True)
class PlanContext:
    """What a plan does not hold itself.

    `config` has the settings of the table environment; `functions` the user's functions by their names in the plan;
    `tables` tells what a temporary table is, by its identifier; `streams` are the DataStreams that are tables.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    tables: Callable[[str], Mapping[str, Any]] | None = None
    streams: Mapping[str, DataStream] = field(default_factory=dict)
    current_time_ms: Callable[[], int] = system_time_ms

    @property
    def time_zone(self) -> str:
        zone = self.config.get(_ZONE, "UTC")
        return "UTC" if zone == "default" else zone

    @property
    def expressions(self) -> ExpressionContext:
        return ExpressionContext(self.time_zone, self.functions, self.current_time_ms)


@dataclass(frozen=True)
class Translation:
    """What the translation of one node has at hand."""

    env: StreamExecutionEnvironment
    context: PlanContext
    node: ExecNode
    inputs: tuple[TableStream, ...]

    @property
    def input(self) -> TableStream:
        return self.inputs[0]

    def then(self, stream: Any, is_changelog: bool, part: str = "") -> TableStream:
        """The output of this node, whose operator is the last one of `stream`, with a name and a stable uid."""
        return TableStream(self.named(stream, part), self.node.row_type, is_changelog)

    def named(self, stream: Any, part: str = "") -> Any:
        node = self.node
        stream.name(short_name(node.description) + (f" {part}" if part else ""))
        stream.set_description(node.description)
        stream.transformation.output_type = internal_type_info(node.row_type)
        return stream.uid(f"{node.position}_{node.kind}{'_' + part if part else ''}")

    def on_rows(self, function: Callable[[list[Any]], list[Any]], part: str = "") -> Any:
        """The input's stream with a function of lists of rows behind it."""
        return self.named(self.input.stream._then("Rows", d.ListFunctionDescription(function), None), part)

    def keyed_process(self, columns: Sequence[int], function: Any, is_changelog: bool) -> TableStream:
        """The output of a function with state for each key of the only input."""
        stream = self.input.keyed(columns).process(function)
        return self.then(stream if columns else stream.force_non_parallel(), is_changelog)

    def keyed_co_process(
        self, columns: tuple[Sequence[int], Sequence[int]], function: Any, is_changelog: bool
    ) -> TableStream:
        left, right = self.inputs
        stream = left.keyed(columns[0]).connect(right.keyed(columns[1])).process(function)
        return self.then(stream if columns[0] else stream.force_non_parallel(), is_changelog)


def short_name(description: str) -> str:
    """A name for dashboards: the node's kind and its first words."""
    return description if len(description) <= 100 else description[:97] + "..."
