"""Names that a module of PyFlink has besides its own, for programs that import them from there.

`from pyflink.datastream.window import Time` works because PyFlink's module happens to import it. Here such a name is
looked for where it lives; what is Java's or internal can be imported, and fails when it is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.compat.absent import absent_name, made_here

_HOMES = (
    "penstock.common",
    "penstock.common.typeinfo",
    "penstock.common.execution_mode",
    "penstock.common.serialization",
    "penstock.common.input_dependency_constraint",
    "penstock.common.restart_strategy",
    "penstock.common.io",
    "penstock.common.watermark_strategy",
    "penstock.common.serializer",
    "penstock.datastream.formats.json",
    "penstock.datastream.formats.csv",
    "penstock.datastream.formats.avro",
    "penstock.datastream",
    "penstock.datastream.functions",
    "penstock.datastream.state",
    "penstock.datastream.window",
    "penstock.datastream.time_domain",
    "penstock.datastream.connectors",
    "penstock.datastream.connectors.base",
    "penstock.datastream.connectors.kafka",
    "penstock.datastream.connectors.pulsar",
    "penstock.datastream.utils",
    "penstock.metrics",
)

_SUBMODULES = {
    "typeinfo": "penstock.common.typeinfo",
    "async_retry_strategies": "penstock.datastream.async_retry_strategies",
}

_CONSTANTS = {"MAX_LONG_VALUE": 2**63 - 1, "MIN_LONG_VALUE": -(2**63), "WINDOW_STATE_NAME": "window-contents"}

_TYPE_VARIABLES = frozenset(("IN", "IN1", "IN2", "OUT", "KEY", "K", "N", "T", "W", "W2"))

# fmt: off
_JAVA = frozenset((
    "get_gateway", "load_java_class", "to_jarray", "get_field", "get_field_value", "invoke_method", "is_instance_of",
    "is_local_deployment", "get_j_env_configuration", "add_jars_to_context_class_loader",
    "create_hadoop_configuration", "create_java_properties", "from_j_flink_time", "to_j_flink_time",
    "from_j_duration", "to_j_duration", "convert_py4j_exception", "JavaObjectWrapper", "JavaFunctionWrapper",
    "ResultTypeQueryable",
))

_INTERNAL = frozenset((
    "FunctionWrapper", "FilterFunctionWrapper", "FlatMapFunctionWrapper", "KeySelectorFunctionWrapper",
    "MapFunctionWrapper", "PartitionerFunctionWrapper", "ReduceFunctionWrapper",
    "AssignerWithPeriodicWatermarksWrapper", "NullByteKeySelector", "InternalWindowFunction",
    "InternalIterableWindowFunction", "InternalIterableProcessWindowFunction", "InternalIterableAllWindowFunction",
    "InternalIterableProcessAllWindowFunction", "InternalSingleValueWindowFunction",
    "InternalSingleValueProcessWindowFunction", "InternalSingleValueAllWindowFunction",
    "InternalSingleValueProcessAllWindowFunction", "InternalProcessWindowContext", "InternalProcessAllWindowContext",
    "InternalTimer", "InternalTimerService", "WindowOperationDescriptor", "PickleSerializer", "GenericMetricGroup",
    "MetricGroupType", "convert_to_python_obj", "pickled_bytes_to_python_obj", "pickled_bytes_to_python_converter",
    "Min", "mod_inverse", "long_to_int_with_bit_mixing", "keyword", "add_version_doc", "Public", "void",
    "_get_one_input_stream_operator", "_get_two_input_stream_operator",
))
# fmt: on


def _is_submodule(package: str, name: str) -> bool:
    has_submodules = hasattr(sys.modules.get(package), "__path__")
    return has_submodules and importlib.util.find_spec(f"{package}.{name}") is not None


def lookup_in(module: str) -> Callable[[str], Any]:
    """A function that finds names which `module` (named as in PyFlink) lacks; AttributeError if there is none."""

    real = "penstock" + module.removeprefix("pyflink")

    def find(name: str) -> Any:
        # `from package import submodule` asks for the name first, and imports the submodule if there is none.
        if (name.startswith("_") and name not in _INTERNAL) or _is_submodule(real, name):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in _TYPE_VARIABLES:
            return TypeVar(name)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in _SUBMODULES:
            return importlib.import_module(_SUBMODULES[name])
        for home in _HOMES:
            found = vars(importlib.import_module(home)).get(name)
            if found is not None:
                return found
        if name in _JAVA or name in _INTERNAL:
            kind = "java" if name in _JAVA else "internal"
            return made_here(kind, name) or absent_name(module, name, kind)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find
