"""The pages of the API, from the docstrings and signatures of what users import."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, GenericAlias, ModuleType
from typing import Any


@dataclass(frozen=True)
class ApiPage:
    """A page: its path below `reference/api`, its title, what it opens with, and the modules it shows.

    Names after a module are those to show; without them, all of its `__all__` (or all that it defines).
    """

    path: str
    title: str
    opening: str
    modules: dict[str, tuple[str, ...]]


PAGES = (
    ApiPage(
        "environment",
        "Environment",
        "Where a program begins and where it is executed.",
        {
            "penstock.datastream": (
                "StreamExecutionEnvironment", "CheckpointConfig", "CheckpointingMode", "RuntimeExecutionMode",
                "ExternalizedCheckpointRetention", "SlotSharingGroup", "TimeCharacteristic",
            ),
            "penstock.common": (
                "Configuration", "ConfigOptions", "ConfigOption", "ExecutionConfig", "JobClient", "JobExecutionResult",
                "JobStatus", "RestartStrategies",
            ),
        },
    ),
    ApiPage(
        "streams",
        "Streams",
        "What a program builds: each method adds an operator and returns the stream behind it.",
        {
            "penstock.datastream": (
                "DataStream", "KeyedStream", "WindowedStream", "AllWindowedStream", "ConnectedStreams",
                "BroadcastStream", "BroadcastConnectedStream", "AsyncDataStream", "DataStreamSink", "CloseableIterator",
                "OutputTag",
            ),
            "penstock.datastream.streams.joined_streams": ("JoinedStreams", "CoGroupedStreams", "WithWindow"),
            "penstock.datastream.streams.interval_join": ("IntervalJoin", "IntervalJoined"),
        },
    ),
    ApiPage("functions", "Functions", "The functions users write, and what they are given.",
            {"penstock.datastream.functions": ()}),
    ApiPage("windows", "Windows", "Window assigners, triggers and evictors.",
            {"penstock.datastream.window": ()}),
    ApiPage(
        "state",
        "State",
        "State of a key or a subtask, how it is described, and where it is kept.",
        {
            "penstock.datastream.state": (
                "ValueState", "ListState", "MapState", "ReducingState", "AggregatingState", "BroadcastState",
                "ReadOnlyBroadcastState", "OperatorStateStore", "KeyedStateStore", "StateDescriptor",
                "ValueStateDescriptor", "ListStateDescriptor", "MapStateDescriptor", "ReducingStateDescriptor",
                "AggregatingStateDescriptor", "StateTtlConfig",
            ),
            "penstock.datastream.state_backend": ("HashMapStateBackend", "EmbeddedRocksDBStateBackend"),
        },
    ),
    ApiPage(
        "time-and-types",
        "Time, watermarks and types",
        "Values that programs share: times, watermark strategies, rows and types.",
        {
            "penstock.common": ("Time", "Duration", "Instant", "WatermarkStrategy", "Types", "Row", "RowKind"),
            "penstock.common.watermark_strategy": ("TimestampAssigner",),
            "penstock.common.watermark_generator": (),
            "penstock.common.typeinfo": ("TypeInformation",),
        },
    ),
    ApiPage(
        "sources",
        "Sources",
        "Sources that are there, and the interfaces of your own.",
        {
            "penstock.datastream.connectors.number_seq": (),
            "penstock.datastream.connectors.data_generator": (),
            "penstock.datastream.connectors.hybrid_source": (),
            "penstock.datastream.connectors.simple_source": (),
            "penstock.datastream.connectors.source_v2": (),
            "penstock.datastream.connectors.bad_records": (),
        },
    ),
    ApiPage(
        "sinks",
        "Sinks",
        "Sinks that are there, and the interfaces of your own.",
        {
            "penstock.datastream.connectors.base": ("DeliveryGuarantee",),
            "penstock.datastream.connectors.sink_v2": (),
            "penstock.datastream.connectors.discarding_sink": (),
            "penstock.datastream.connectors.socket_sink": (),
            "penstock.datastream.connectors.http": (),
            "penstock.datastream.connectors.redis": (),
        },
    ),
    ApiPage("files", "Files", "Sources and sinks of files.",
            {"penstock.datastream.connectors.file_system": ()}),
    ApiPage("kafka", "Kafka", "The source and the sink for Kafka.",
            {"penstock.datastream.connectors.kafka": (), "penstock.datastream.connectors.dynamic_kafka": ()}),
    ApiPage("jdbc", "Databases", "The sinks for databases.",
            {"penstock.datastream.connectors.jdbc": ()}),
    ApiPage("elasticsearch", "Elasticsearch and OpenSearch", "The sinks for Elasticsearch and OpenSearch.",
            {"penstock.datastream.connectors.elasticsearch": (), "penstock.datastream.connectors.opensearch": ()}),
    ApiPage(
        "formats",
        "Formats",
        "How records become bytes or files, and bytes or files become records.",
        {
            "penstock.common.serialization": (),
            "penstock.datastream.formats.json": (),
            "penstock.datastream.formats.csv": (),
            "penstock.datastream.formats.avro": (),
            "penstock.datastream.formats.parquet": (),
            "penstock.datastream.formats.orc": (),
            "penstock.datastream.formats.python_objects": (),
        },
    ),
    ApiPage("exceptions", "Exceptions", "What Penstock raises.",
            {"penstock.common.exceptions": ()}),
    ApiPage("metrics", "Metrics", "Counters, gauges, meters and histograms of user functions.",
            {"penstock.metrics": ()}),
    ApiPage("testing", "Testing", "One operator without Spark, with a clock that the test sets.",
            {"penstock.testing": ("OperatorHarness", "JobInEpochs", "Fault", "FaultPlan")}),
    ApiPage("state-processor", "State processor", "Reading and writing savepoints as DataFrames.",
            {"penstock.state_processor": ()}),
    ApiPage("notebook", "Notebooks", "Jobs in the background of a notebook.",
            {"penstock.notebook": ()}),
)  # fmt: skip


_SHARED_BASES = ("EnvironmentSettings", "OperatorSettings", "StreamSettings")
"""Classes that users know by what inherits from them."""


def pages() -> dict[str, str]:
    """Markdown by path in the site."""
    index = "# API\n\nWhat programs import, by topic. Names, parameters and defaults are PyFlink's.\n\n" + "\n".join(
        f"- [{page.title}]({page.path}.md): {page.opening}" for page in PAGES
    )
    return {f"reference/api/{page.path}.md": _page(page) for page in PAGES} | {"reference/api/index.md": index + "\n"}


def members_of(page: ApiPage) -> Iterator[tuple[str, Any]]:
    """The public classes and functions that a page shows, each with its name.

    A page that shows all of a module leaves out what another page names, and what another of its modules has, too.
    """
    elsewhere = {name for other in PAGES if other is not page for names in other.modules.values() for name in names}
    shown: set[str] = set()
    for module_name, names in page.modules.items():
        module = importlib.import_module(module_name)
        for name in names or [name for name in _public_names(module) if name not in elsewhere | shown]:
            value = getattr(module, name)
            is_class = inspect.isclass(value) and not isinstance(value, GenericAlias)  # Python 3.10 takes both for one.
            if is_class or inspect.isfunction(value):
                shown.add(name)
                yield name, value


def _public_names(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def public_methods(cls: type) -> dict[str, Any]:
    """The methods that a class has itself or from a base that users do not see, by name."""
    bases = [base for base in reversed(cls.__mro__) if base is cls or _is_unseen(base)]
    found = {name: value for base in bases for name, value in vars(base).items() if not name.startswith("_")}
    kinds = (FunctionType, staticmethod, classmethod, property)
    return {name: value for name, value in found.items() if isinstance(value, kinds)}


def _is_unseen(base: type) -> bool:
    return base.__name__.startswith("_") or base.__name__ in _SHARED_BASES


def _page(page: ApiPage) -> str:
    imports = ", ".join(f"`{name}`" for name in page.modules)
    parts = [f"# {page.title}\n\n{page.opening} Import from {imports}.\n"]
    parts += [_member(name, value) for name, value in members_of(page)]
    return "\n".join(parts)


def _member(name: str, value: Any) -> str:
    heading = f"## {name}\n\n"
    if inspect.isfunction(value):
        return heading + _directive("py:function", f"{name}{_signature(value)}", markdown(inspect.getdoc(value)), 3)
    methods = "\n".join(_method(value, each, method) for each, method in public_methods(value).items())
    doc = markdown(inspect.cleandoc(value.__doc__) if value.__doc__ else None)
    return heading + _directive("py:class", f"{name}{_bases(value)}", f"{doc}\n\n{methods}", 4)


def _method(cls: type, name: str, method: Any) -> str:
    doc = markdown(inspect.getdoc(getattr(cls, name)))
    if isinstance(method, property):
        return _directive("py:property", name, doc, 3)
    function = method.__func__ if isinstance(method, staticmethod | classmethod) else method
    kind = {staticmethod: "py:staticmethod", classmethod: "py:classmethod"}.get(type(method), "py:method")
    return _directive(kind, name + _signature(function, has_self=not isinstance(method, staticmethod)), doc, 3)


def _directive(kind: str, argument: str, body: str, colons: int) -> str:
    fence = ":" * colons
    return f"{fence}{{{kind}}} {argument}\n\n{body.strip()}\n{fence}\n"


def _bases(cls: type) -> str:
    names = [base.__name__ for base in cls.__bases__ if base is not object and not _is_unseen(base)]
    shown = [name for name in names if name not in ("ABC", "Generic")]
    return f"({', '.join(shown)})" if shown else ""


def _signature(function: Any, has_self: bool = False) -> str:
    signature = inspect.signature(function)
    shown = ", ".join(_parameter(each) for each in list(signature.parameters.values())[1 if has_self else 0 :])
    returned = signature.return_annotation
    arrow = "" if returned in (signature.empty, "None", None) else f" -> {_annotation(returned)}"
    return f"({shown}){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    annotation = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}{annotation}{default}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    text = repr(value)
    return "..." if " at 0x" in text or text.startswith("<") else text


def markdown(doc: str | None) -> str:
    """A docstring as Markdown: its examples become code blocks, and its `:param` lines a list."""
    if not doc:
        return ""
    text = re.sub(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*\n?(?=^>>>)?)+", _as_code_block, doc, flags=re.MULTILINE)
    text = re.sub(r"^:param (\w+): ?", r"\n- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(
        r"^:(returns?|raises?)(?: (\w+))?: ?", lambda m: f"\n**{m[1]}** {m[2] or ''} ", text, flags=re.MULTILINE
    )


def _as_code_block(example: re.Match[str]) -> str:
    return f"\n```pycon\n{example[0].strip()}\n```\n\n"
