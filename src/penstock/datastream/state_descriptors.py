"""Descriptions of state: its name, its type and how long it lives."""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.functions.elements import AggregateFunction, ReduceFunction, ReduceFunctionWrapper
from penstock.datastream.state_ttl import StateTtlConfig


class StateDescriptor(ABC):
    """Names a state and its type. Within an operator, descriptors of one kind and name mean the same state.

    :param name: Name of the state, unique within its operator.
    :param type_info: Type of the values; any picklable Python value if left out.

    `ValueStateDescriptor` has an example.
    """

    name: str
    type_info: TypeInformation

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{type(self).__name__}: name must be a non-empty string, got {name!r}")
        self.name = name
        self.type_info = _type_or_any(type(self).__name__, type_info)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The name of the state."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values expire; see `StateTtlConfig.new_builder`. Call it before you ask for the state."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(
                f"{type(self).__name__} {self.name!r}: enable_time_to_live needs a StateTtlConfig, got "
                f"{type(ttl_config).__name__}; build one with StateTtlConfig.new_builder(ttl).build()"
            )
        self._ttl_config = ttl_config

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """How values expire; None if they do not."""
        config = self._ttl_config
        return config if config is not None and config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, StateDescriptor) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, type_info={self.type_info})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a single value for each key.

    :param default_value: What `value()` returns while nothing was written; each read gets a copy of its own.

    >>> from penstock.common import Types
    >>> ValueStateDescriptor("count", Types.LONG(), default_value=0).get_default_value()
    0
    """

    def __init__(self, name: str, value_type_info: TypeInformation | None = None, default_value: Any = None) -> None:
        super().__init__(name, value_type_info)
        self._default_value = default_value

    def get_default_value(self) -> Any:
        """A copy of the default value; None unless one was given."""
        return copy.deepcopy(self._default_value)


class ListStateDescriptor(StateDescriptor):
    """Describes a list for each key, or operator list state.

    >>> from penstock.common import Types
    >>> ListStateDescriptor("pending", Types.STRING()).get_name()
    'pending'
    """

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, Types.LIST(_type_or_any(type(self).__name__, elem_type_info)))


class MapStateDescriptor(StateDescriptor):
    """Describes a map for each key, or broadcast state.

    >>> from penstock.common import Types
    >>> MapStateDescriptor("pages", Types.STRING(), Types.LONG()).get_name()
    'pages'
    """

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> None:
        kind = type(self).__name__
        super().__init__(name, Types.MAP(_type_or_any(kind, key_type_info), _type_or_any(kind, value_type_info)))


class ReducingStateDescriptor(StateDescriptor):
    """Describes one value for each key that added values are reduced into.

    >>> ReducingStateDescriptor("largest", max).get_reduce_function().reduce(2, 5)
    5
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeInformation | None = None,
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = _as_reduce_function(name, reduce_function)

    def get_reduce_function(self) -> ReduceFunction:
        """The function that reduces two values to one."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes one accumulator for each key that added values are aggregated into by an AggregateFunction.

    `AggregatingState` has an example.
    """

    def __init__(
        self, name: str, agg_function: AggregateFunction, state_type_info: TypeInformation | None = None
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(
                f"AggregatingStateDescriptor {name!r}: agg_function must be an AggregateFunction, "
                f"got {type(agg_function).__name__}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """The function that adds to the accumulator."""
        return self._agg_function


def _type_or_any(where: str, type_info: TypeInformation | None) -> TypeInformation:
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(type_info, TypeInformation):
        return type_info
    raise TypeError(f"{where}: expected a TypeInformation such as Types.STRING() or None, got {type_info!r}")


def _as_reduce_function(name: str, function: ReduceFunction | Callable[[Any, Any], Any]) -> ReduceFunction:
    if isinstance(function, ReduceFunction):
        return function
    if callable(function):
        return ReduceFunctionWrapper(function)
    raise TypeError(
        f"ReducingStateDescriptor {name!r}: reduce_function must be a ReduceFunction or a callable of two values, "
        f"got {type(function).__name__}"
    )
