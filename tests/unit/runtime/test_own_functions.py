"""Every subtask has functions of its own, and a restart begins with new ones: closures, methods and objects alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.common.own_copies import own_copy
from penstock.datastream import DataStream, KeyedProcessFunction, MapFunction
from penstock.datastream.connectors import SimpleSource, Sink, SinkWriter
from penstock.datastream.window import (
    CountTrigger,
    Evictor,
    GlobalWindows,
    TimeWindow,
    TriggerResult,
    TumblingEventTimeWindows,
)
from penstock.graph.partitioners import CustomPartitioner, KeyGroupStreamPartitioner
from penstock.runtime.partitioning import build_dealer
from penstock.testing import OperatorHarness


class Counter:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def count(self, *_: Any) -> int:
        self.calls += 1
        return self.calls

    __call__ = count


class CountingFunction(MapFunction):
    def __init__(self, counter: Any) -> None:
        self.counter = counter

    def map(self, value: Any) -> int:
        return self.counter()


def closure() -> Callable[..., int]:
    calls = 0

    def count(*_: Any) -> int:
        nonlocal calls
        calls += 1
        return calls

    return count


def closure_over_a_list() -> Callable[..., int]:
    seen: list[Any] = []
    return lambda value: seen.append(value) or len(seen)  # type: ignore[func-returns-value]


def with_default() -> Callable[..., int]:
    def count(value: Any, seen: list[Any] = []) -> int:  # noqa: B006
        seen.append(value)
        return len(seen)

    return count


def with_attribute() -> Callable[..., int]:
    def count(value: Any) -> int:
        count.calls += 1  # type: ignore[attr-defined]
        return count.calls  # type: ignore[attr-defined, no-any-return]

    count.calls = 0  # type: ignore[attr-defined]
    return count


def appended(seen: list[Any], value: Any) -> int:
    seen.append(value)
    return len(seen)


COUNTING: dict[str, Callable[[], Any]] = {
    "closure": closure,
    "closure over a list": closure_over_a_list,
    "default": with_default,
    "attribute": with_attribute,
    "method": lambda: Counter().count,
    "object": Counter,
    "partial": lambda: partial(appended, []),
    "function object": lambda: CountingFunction(Counter()),
    "function object with a closure": lambda: CountingFunction(closure()),
}


@pytest.mark.parametrize("kind", COUNTING)
def test_subtasks_do_not_share_a_function(run_target: Any, kind: str) -> None:
    """There are fewer processes than subtasks."""
    counts = run_target(4).from_collection(range(8)).rebalance().map(COUNTING[kind](), Types.LONG())
    assert sorted(counts.execute_and_collect()) == [1, 1, 1, 1, 2, 2, 2, 2]


class FailsOnce(MapFunction):
    has_failed: ClassVar[bool] = False

    def map(self, value: int) -> int:
        if value == 3 and not FailsOnce.has_failed:
            FailsOnce.has_failed = True
            raise ValueError("once")
        return value


RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


@pytest.mark.parametrize("kind", COUNTING)
def test_restart_begins_with_the_function_as_it_was_given(kind: str, inline: Any) -> None:
    FailsOnce.has_failed = False
    given = COUNTING[kind]()
    counts = inline(1, RESTARTS).from_collection(range(4)).map(given).map(FailsOnce())
    assert list(counts.execute_and_collect()) == [1, 2, 3, 4]
    assert FailsOnce.has_failed


@pytest.fixture
def inline() -> Any:
    from tests.conftest import EnvironmentFactory

    return EnvironmentFactory("inline")


# --- every place where the user's functions are called ----------------------------------------------------------------


def first_call(counter: Counter) -> Callable[[Any], bool]:
    return lambda value: counter() == 1


def in_list(counter: Counter) -> Callable[[Any], list[int]]:
    return lambda value: [counter()]


class KeyOf(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key()


class FirstCalls(CountTrigger):
    """Fires for its first element only."""

    def __init__(self) -> None:
        super().__init__(1)
        self.counter = Counter()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE if self.counter() == 1 else TriggerResult.CONTINUE


class FirstEvictions(Evictor[Any, Any]):
    """Leaves everything in its first window, nothing in others."""

    def __init__(self) -> None:
        self.counter = Counter()

    def evict_before(self, elements: Any, size: int, window: TimeWindow, evictor_context: Any) -> None:
        if self.counter() > 1:
            elements.clear()

    def evict_after(self, elements: Any, size: int, window: TimeWindow, evictor_context: Any) -> None:
        pass


class CountingWriter(SinkWriter[Any]):
    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def write(self, element: Any, context: Any) -> None:
        CountingSink.written.append(self._counter())

    def flush(self, end_of_input: bool) -> None:
        pass


class CountingSink(Sink):
    written: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.counter = Counter()

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        return CountingWriter(self.counter)


class CountingSource(SimpleSource):
    reads_in_turns = True  # So each subtask is given a split at once.

    def __init__(self) -> None:
        self.counter = Counter()

    def splits(self) -> Iterable[int]:
        return range(4)

    def read(self, split: int, offset: Any) -> Iterator[Any]:
        for number in range(offset or 0, 2):
            yield number + 1, self.counter()


GLOBAL = GlobalWindows.create()
PLACES: dict[str, Callable[[DataStream], Any]] = {
    "map": lambda stream: stream.map(Counter()),
    "filter": lambda stream: stream.filter(first_call(Counter())),
    "flat_map": lambda stream: stream.flat_map(in_list(Counter())),
    "keyed map": lambda stream: stream.key_by(lambda _: 0).map(closure()),
    "key selector": lambda stream: stream.key_by(Counter()).process(KeyOf()),
    "reduce": lambda stream: stream.key_by(lambda _: 0).reduce(Counter()),
    "reduce of windows": lambda stream: stream.key_by(lambda _: 0).count_window(2).reduce(Counter()),
    "trigger": lambda stream: stream.key_by(lambda _: 0).window(GLOBAL).trigger(FirstCalls()).reduce(max),
    "evictor": lambda stream: (
        stream.key_by(lambda _: 0).window(GLOBAL).trigger(CountTrigger(1)).evictor(FirstEvictions()).reduce(max)
    ),
    "timestamps": lambda stream: stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Counter().count)
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_operator_that_is_built_again_begins_anew(place: str) -> None:
    described: list[Any] = []

    def build(stream: DataStream) -> Any:
        described[:] = described or [PLACES[place](stream)]
        return described[0]

    outputs = []
    for _ in range(2):
        harness = OperatorHarness.of(build)
        for value in (5, 6, 7):
            harness.element(value, at=value)
        outputs.append(harness.recorded.records)
    assert outputs[0] == outputs[1] != []


def test_subtasks_do_not_share_key_selectors_and_partitioners() -> None:
    keyed, custom = KeyGroupStreamPartitioner(Counter()), CustomPartitioner(lambda key, _: key, closure())
    for _ in range(2):
        [(_, batch)] = build_dealer(keyed, 1, 128).deal(["a", "b"], None)
        assert batch.keys == [1, 2]
        assert [target for target, _ in build_dealer(custom, 3, 128).deal(["a", "b"], None)] == [1, 2]


def test_subtasks_do_not_share_a_sink(inline: Any) -> None:
    CountingSink.written.clear()
    env = inline(4)
    env.from_collection(range(8)).rebalance().sink_to(CountingSink())
    env.execute()
    assert sorted(CountingSink.written) == [1, 1, 1, 1, 2, 2, 2, 2]


def test_subtasks_do_not_share_a_source(run_target: Any) -> None:
    source = CountingSource()
    numbers = run_target(4).from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    assert sorted(numbers.execute_and_collect()) == [1, 1, 1, 1, 2, 2, 2, 2]
    assert source.counter.calls == 0


# --- the copies themselves --------------------------------------------------------------------------------------------


def test_classes_and_what_can_be_imported_stay_the_same() -> None:
    class Local:
        def method(self) -> type:
            return Local

    method = Local.method
    copied = own_copy(Local())
    assert type(copied) is Local and copied.method() is Local
    assert Local.method is method
    assert own_copy(appended) is appended
    assert own_copy(Time) is Time and own_copy(TumblingEventTimeWindows) is TumblingEventTimeWindows


class CannotBeUnpickled:
    def __call__(self, value: Any) -> Any:
        return value

    def __setstate__(self, state: Any) -> None:
        raise ConnectionError("no server")

    def __getstate__(self) -> Any:
        return {"server": "some"}


def test_job_says_which_function_cannot_be_copied(inline: Any) -> None:
    with pytest.raises(JobExecutionError, match=r"CannotBeUnpickled cannot be copied .*ConnectionError: no server"):
        list(inline().from_collection([1]).map(CannotBeUnpickled()).execute_and_collect())


def test_what_cannot_be_copied_is_refused() -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(InvalidProgramError, match=r"function cannot be copied for each subtask .* make connections"):
        own_copy(lambda: lock)
