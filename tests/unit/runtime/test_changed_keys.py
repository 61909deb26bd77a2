"""A key is not the same object as a part of its element: a function that changes its input does not change its key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.common import Row, Types
from penstock.datastream import KeyedProcessFunction, ProcessWindowFunction, RuntimeExecutionMode
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.chunk import ChunkWriter, read_chunk
from penstock.runtime.hashable_keys import hashable_keys
from penstock.testing import OperatorHarness


@dataclass(unsafe_hash=True)
class User:
    name: str
    groups: tuple[Any, ...] = field(default=())


def change(key: Any) -> None:
    match key:
        case User():
            key.name = "changed"
        case [User(), *_]:
            key[0].name = "changed"
        case Row() | list():
            key[0] = "changed"
        case dict():
            key["a"] = "changed"
        case tuple():
            change(key[1])
        case set() | bytearray():
            key.clear()
        case _:
            raise AssertionError(f"{key!r} cannot be changed")


def keys() -> list[Any]:
    """Keys that can be changed; each call makes them anew."""
    return [
        User("ann"),
        (1, User("ann")),
        (1, [User("ann")]),
        [User("ann")],
        [1, [2]],
        {"a": [1]},
        {1, 2},
        bytearray(b"a"),
        Row("a", 1),
        (1, Row("a", 1)),
    ]


class ChangingCount(KeyedProcessFunction):
    """Changes the key in its element, then counts and sets a timer, which tells the count."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        before = repr(ctx.get_current_key())
        change(value[0])
        assert repr(ctx.get_current_key()) == before
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield repr(ctx.get_current_key()), self.count.value()


class ChangingWindow(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        before, count = repr(key), 0
        for element in elements:
            change(element[0])
            count += 1
        assert repr(key) == before
        yield before, count


@pytest.mark.parametrize("at", range(len(keys())))
def test_keys_and_values_of_a_chunk_share_nothing(at: int) -> None:
    writer = ChunkWriter()
    values = [(keys()[at], number) for number in range(3)]
    writer.add_batch(values, None, hashable_keys([value[0] for value in values]))
    for chunk in writer.take_chunks():
        for batch in read_chunk(chunk):
            before = repr(batch.keys)
            for value in batch.values:
                change(value[0])
            assert repr(batch.keys) == before


@pytest.mark.parametrize("at", range(len(keys())))
def test_harness_keeps_keys_apart_from_elements(at: int) -> None:
    harness = OperatorHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).process(ChangingCount()))
    for number in range(3):
        harness.element((keys()[at], number), at=number)
    [(_, count)] = harness.watermark(10).output
    assert count == 3


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_function_that_changes_its_input_keeps_its_key(
    run_target: Any, mode: RuntimeExecutionMode, parallelism: int
) -> None:
    env = run_target(parallelism)
    env.set_runtime_mode(mode)
    pairs = env.from_collection([(key, number) for number in range(3) for key in keys()])
    keyed = pairs.map(lambda pair: pair).key_by(lambda pair: pair[0])
    both = keyed.process(ChangingCount()).union(keyed.count_window(3).process(ChangingWindow()))
    assert sorted(both.execute_and_collect()) == sorted((repr(key), 3) for key in hashable_keys(keys()) * 2)
