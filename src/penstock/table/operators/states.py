"""States of table operators, with the time to live that the plan gives them."""

from __future__ import annotations

from typing import Any

from penstock.common.time import Time
from penstock.datastream.functions import RuntimeContext
from penstock.datastream.state_descriptors import MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from penstock.datastream.state_ttl import StateTtlConfig


def _with_ttl(descriptor: StateDescriptor, ttl_ms: int) -> Any:
    if ttl_ms > 0:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).build())
    return descriptor


def value_state(context: RuntimeContext, name: str, ttl_ms: int = 0) -> Any:
    return context.get_state(_with_ttl(ValueStateDescriptor(name), ttl_ms))


def map_state(context: RuntimeContext, name: str, ttl_ms: int = 0) -> Any:
    return context.get_map_state(_with_ttl(MapStateDescriptor(name), ttl_ms))
