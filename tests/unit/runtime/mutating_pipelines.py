"""Pipelines whose functions spoil everything they ever had in their hands, and what they must give nevertheless.

A pipeline is a tree of stages. Its elements are `[key, time, log]`; a stage adds to the log. Each stage is written
twice: as a function that keeps what it gets and emits and writes SPOILED into all of it later, and as a model, which
computes results from copies only. If nothing is shared between functions, both give the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

Element = list[Any]
SPOILED = "spoiled"
SIZE_MS, SLIDE_MS, GAP_MS = 10, 5, 4


class Spoiler:
    """Keeps elements, and spoils them the next time it is used."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def keep(self, *elements: Any) -> None:
        for element in self._kept:
            element[2].append(SPOILED)
            element[0] = SPOILED
        self._kept = [element for element in elements if isinstance(element, list)]

    spoil_all = keep


# --- stages ----------------------------------------------------------------------------------------------------------


class Touch(MapFunction):
    """Changes the element in place and returns it."""

    def __init__(self) -> None:
        self.spoiler = Spoiler()

    def map(self, value: Element) -> Element:
        self.spoiler.keep(value)
        value[2].append("touched")
        return value


class OneBuffer(MapFunction):
    """Returns the same object every time."""

    def __init__(self) -> None:
        self.buffer: Element = ["", 0, []]

    def map(self, value: Element) -> Element:
        self.buffer[0], self.buffer[1] = value[0], value[1]
        self.buffer[2][:] = [*value[2], "buffered"]
        return self.buffer


class KeepAll(FilterFunction):
    def __init__(self) -> None:
        self.spoiler = Spoiler()

    def filter(self, value: Element) -> bool:
        self.spoiler.keep(value)
        return value[1] % 3 != 2


class Twice(FlatMapFunction):
    """Emits the element, changes it, emits it again, and spoils it."""

    def flat_map(self, value: Element) -> Iterator[Element]:
        value[2].append("first")
        yield value
        value[2][-1] = "second"
        yield value
        value[2].append(SPOILED)


class Nested(MapFunction):
    """A tuple is immutable; the list in it is not."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def map(self, value: Element) -> tuple[Any, ...]:
        self.log[:] = [*value[2], "nested"]
        return value[0], value[1], self.log


class SideOutput(ProcessFunction):
    TAG = OutputTag("side")

    def __init__(self) -> None:
        self.spoiler = Spoiler()

    def process_element(self, value: Element, ctx: ProcessFunction.Context) -> Iterator[Element]:
        self.spoiler.keep(value)
        value[2].append("side")
        ctx.output(self.TAG, value)
        value[2][-1] = "main"
        yield value


class Concatenate(ReduceFunction):
    """Changes and returns its first argument; the second one is kept and spoiled."""

    def __init__(self) -> None:
        self.spoiler = Spoiler()

    def reduce(self, value1: Element, value2: Element) -> Element:
        self.spoiler.keep(value2)
        value1[1] = value2[1]
        value1[2].extend(value2[2])
        return value1


class CountingState(KeyedProcessFunction):
    """What the issue of all this looks like: state is read, changed, updated and emitted."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.times = runtime_context.get_state(ValueStateDescriptor("times"))

    def process_element(self, value: Element, ctx: KeyedProcessFunction.Context) -> Iterator[Element]:
        times = self.times.value() or []
        times.append(value[1])
        self.times.update(times)
        yield [value[0], value[1], times]


class ListedState(KeyedProcessFunction):
    """Keeps elements in a list and a map, and emits those very elements."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.elements = runtime_context.get_list_state(ListStateDescriptor("elements"))
        self.latest = runtime_context.get_map_state(MapStateDescriptor("latest"))

    def process_element(self, value: Element, ctx: KeyedProcessFunction.Context) -> Iterator[Element]:
        self.elements.add(value)
        self.latest.put("latest", value)
        yield value
        yield next(iter(self.elements.get()))
        yield self.latest.get("latest")


class Gather(AggregateFunction):
    """The accumulator is the result."""

    def create_accumulator(self) -> Element:
        return ["", 0, []]

    def add(self, value: Element, accumulator: Element) -> Element:
        accumulator[0], accumulator[1] = value[0], value[1]
        accumulator[2].append(value[2])
        value[0] = SPOILED
        return accumulator

    def get_result(self, accumulator: Element) -> Element:
        return accumulator

    def merge(self, acc_a: Element, acc_b: Element) -> Element:
        acc_a[1] = acc_b[1]
        acc_a[2].extend(acc_b[2])
        return acc_a


class WindowContents(ProcessWindowFunction):
    """Emits all elements as one, and spoils them."""

    def process(self, key: str, context: Any, elements: Iterable[Element]) -> Iterator[Element]:
        listed = list(elements)
        emitted = [key, listed[-1][1], [element[2] for element in listed]]
        yield emitted
        for element in [emitted, *listed]:
            element[2].append(SPOILED)
            element[0] = SPOILED


class JoinLogs(ProcessJoinFunction):
    def process_element(self, left: Element, right: Element, ctx: Any) -> Iterator[Element]:
        left[2].append(right[2])
        yield [left[0], max(left[1], right[1]), left[2]]
        left[2].append(SPOILED)
        right[2].append(SPOILED)


# --- the models ------------------------------------------------------------------------------------------------------

Timed = tuple[Element, int]
"""An element and its timestamp."""
Model = Callable[[list[Timed]], list[Timed]]


def each(change: Callable[[Element], list[Element]]) -> Model:
    """The model of a stage that looks at one element at a time."""
    return lambda stream: [(made, time) for element, time in stream for made in change(copy.deepcopy(element))]


def with_log(element: Element, *added: Any) -> Element:
    return [element[0], element[1], [*element[2], *added]]


def by_key(change: Callable[[list[Timed]], list[Timed]]) -> Model:
    """The model of a stage that looks at one key at a time."""

    def model(stream: list[Timed]) -> list[Timed]:
        keys = dict.fromkeys(element[0] for element, _ in stream)
        return [made for key in keys for made in change(copy.deepcopy([each for each in stream if each[0][0] == key]))]

    return model


def running(result: Callable[[list[Element]], list[Element]]) -> Model:
    """The model of a stage whose results depend on all elements of the key so far."""
    return by_key(
        lambda stream: [
            (made, time)
            for count, (_, time) in enumerate(stream, 1)
            for made in copy.deepcopy(result([element for element, _ in copy.deepcopy(stream[:count])]))
        ]
    )


def joined(elements: list[Element]) -> Element:
    return [elements[0][0], elements[-1][1], [item for element in elements for item in element[2]]]


def gathered(elements: list[Element]) -> Element:
    return [elements[0][0], elements[-1][1], [element[2] for element in elements]]


def windowed(
    panes: Callable[[list[Timed]], list[tuple[int, list[Element]]]], result: Callable[[list[Element]], Element]
) -> Model:
    """`panes` gives the end of each window of a key, and its elements."""
    return by_key(
        lambda stream: [
            (copy.deepcopy(result(elements)), end - 1) for end, elements in sorted(panes(stream), key=lambda it: it[0])
        ]
    )


def sliding(slide: int) -> Callable[[list[Timed]], list[tuple[int, list[Element]]]]:
    def panes(stream: list[Timed]) -> list[tuple[int, list[Element]]]:
        found: dict[int, list[Element]] = {}
        for element, time in stream:
            start = time - time % slide
            while start > time - SIZE_MS:
                found.setdefault(start + SIZE_MS, []).append(copy.deepcopy(element))
                start -= slide
        return list(found.items())

    return panes


def sessions(stream: list[Timed]) -> list[tuple[int, list[Element]]]:
    found: list[tuple[int, list[Element]]] = []
    for element, time in sorted(stream, key=lambda each: each[1]):
        if found and time <= found[-1][0]:
            found[-1] = (time + GAP_MS, [*found[-1][1], element])
        else:
            found.append((time + GAP_MS, [element]))
    return found


def on_every_second(most: int | None, result: Callable[[list[Element]], Element] = gathered) -> Model:
    """A count trigger on a window without end; an evictor leaves the last `most` elements whenever it fires."""

    def change(stream: list[Timed]) -> list[Timed]:
        held: list[Element] = []
        results: list[Timed] = []
        for count, (element, _) in enumerate(stream, 1):
            held.append(element)
            if count % 2 == 0:
                held = held if most is None else held[-most:]
                results.append((copy.deepcopy(result(held)), 2**63 - 1))
        return results

    return by_key(change)


def pairs(stream: list[Timed]) -> list[Timed]:
    """The interval join of a stream with itself: pairs at most GAP_MS apart."""
    return [
        ([left[0], max(left[1], right[1]), [*left[2], right[2]]], max(mine, other))
        for left, mine in copy.deepcopy(stream)
        for right, other in copy.deepcopy(stream)
        if abs(other - mine) <= GAP_MS
    ]


# --- pipelines -------------------------------------------------------------------------------------------------------


def key_of(element: Element) -> str:
    return element[0]


def tumbling(stream: Any) -> Any:
    return stream.key_by(key_of).window(TumblingEventTimeWindows.of(Time.milliseconds(SIZE_MS)))


def overlapping(stream: Any) -> Any:
    sizes = Time.milliseconds(SIZE_MS), Time.milliseconds(SLIDE_MS)
    return stream.key_by(key_of).window(SlidingEventTimeWindows.of(*sizes))


def in_sessions(stream: Any) -> Any:
    return stream.key_by(key_of).window(EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS)))


def by_count(stream: Any) -> Any:
    return stream.key_by(key_of).window(GlobalWindows.create()).trigger(CountTrigger.of(2))


def with_side_output(stream: Any) -> Any:
    main = stream.process(SideOutput())
    return main.union(main.get_side_output(SideOutput.TAG))


def joined_with_itself(stream: Any) -> Any:
    keyed = stream.key_by(key_of)
    return keyed.interval_join(keyed).between(Time.milliseconds(-GAP_MS), Time.milliseconds(GAP_MS)).process(JoinLogs())


@dataclass(frozen=True)
class Stage:
    """A part of a pipeline: how it is built, and its model."""

    build: Callable[[Any], Any]
    model: Model
    is_last: bool = False
    """True if the order of its results within a key is not certain, or they have no time."""


STAGES: dict[str, Stage] = {
    "touch": Stage(lambda s: s.map(Touch()), each(lambda e: [with_log(e, "touched")])),
    "one buffer": Stage(lambda s: s.map(OneBuffer()), each(lambda e: [with_log(e, "buffered")])),
    "nested": Stage(lambda s: s.map(Nested()).map(list), each(lambda e: [with_log(e, "nested")])),
    "lambda": Stage(lambda s: s.map(lambda e: [e[0], e[1], e[2]]), each(lambda e: [e])),
    "add": Stage(lambda s: s.map(lambda e: [e[0], e[1], [*e[2], "add"]]), each(lambda e: [with_log(e, "add")])),
    "filter": Stage(lambda s: s.filter(KeepAll()), each(lambda e: [e] if e[1] % 3 != 2 else [])),
    "twice": Stage(lambda s: s.flat_map(Twice()), each(lambda e: [with_log(e, "first"), with_log(e, "second")])),
    "list twice": Stage(lambda s: s.flat_map(lambda e: [e, e]), each(lambda e: [e, e])),
    "side output": Stage(with_side_output, each(lambda e: [with_log(e, "main"), with_log(e, "side")]), is_last=True),
    "reduce": Stage(lambda s: s.key_by(key_of).reduce(Concatenate()), running(lambda all: [joined(all)])),
    "value state": Stage(
        lambda s: s.key_by(key_of).process(CountingState()),
        running(lambda all: [[all[-1][0], all[-1][1], [element[1] for element in all]]]),
    ),
    "list state": Stage(
        lambda s: s.key_by(key_of).process(ListedState()), running(lambda all: [all[-1], all[0], all[-1]])
    ),
    "tumbling reduce": Stage(lambda s: tumbling(s).reduce(Concatenate()), windowed(sliding(SIZE_MS), joined)),
    "tumbling reduce, process": Stage(
        lambda s: tumbling(s).reduce(Concatenate(), WindowContents()),
        windowed(sliding(SIZE_MS), lambda elements: gathered([joined(elements)])),
    ),
    "tumbling aggregate": Stage(lambda s: tumbling(s).aggregate(Gather()), windowed(sliding(SIZE_MS), gathered)),
    "tumbling process": Stage(lambda s: tumbling(s).process(WindowContents()), windowed(sliding(SIZE_MS), gathered)),
    "sliding reduce": Stage(lambda s: overlapping(s).reduce(Concatenate()), windowed(sliding(SLIDE_MS), joined)),
    "sliding aggregate": Stage(lambda s: overlapping(s).aggregate(Gather()), windowed(sliding(SLIDE_MS), gathered)),
    "sliding process": Stage(lambda s: overlapping(s).process(WindowContents()), windowed(sliding(SLIDE_MS), gathered)),
    "session reduce": Stage(lambda s: in_sessions(s).reduce(Concatenate()), windowed(sessions, joined)),
    "session process": Stage(lambda s: in_sessions(s).process(WindowContents()), windowed(sessions, gathered)),
    "count trigger process": Stage(lambda s: by_count(s).process(WindowContents()), on_every_second(None), True),
    "count trigger aggregate": Stage(lambda s: by_count(s).aggregate(Gather()), on_every_second(None), True),
    "evictor": Stage(lambda s: by_count(s).evictor(CountEvictor.of(3)).aggregate(Gather()), on_every_second(3), True),
    "evictor reduce": Stage(
        lambda s: by_count(s).evictor(CountEvictor.of(3)).reduce(Concatenate()), on_every_second(3, joined), True
    ),
    "count trigger aggregate, process": Stage(
        lambda s: by_count(s).aggregate(Gather(), WindowContents()),
        on_every_second(None, lambda elements: gathered([gathered(elements)])),
        True,
    ),
    "interval join": Stage(joined_with_itself, by_key(pairs), True),
}


@dataclass(frozen=True)
class Pipeline:
    """Stages one after the other, by name, and pipelines that all read what the last of them gives."""

    stages: tuple[str, ...]
    branches: tuple[Pipeline, ...] = ()

    def build(self, stream: Any) -> list[Any]:
        for name in self.stages:
            stream = STAGES[name].build(stream)
        return [stream] + [end for branch in self.branches for end in branch.build(stream)]

    def expected(self, stream: list[Timed]) -> list[Element]:
        for name in self.stages:
            stream = STAGES[name].model(stream)
        ends = [element for branch in self.branches for element in branch.expected(copy.deepcopy(stream))]
        return [element for element, _ in stream] + ends


def environment(combines: bool = True, chains: bool = True, epoch_records: int = 1000) -> StreamExecutionEnvironment:
    settings = {
        "execution.target": "inline",
        "penstock.combine.enabled": str(combines).lower(),
        "pipeline.operator-chaining.enabled": str(chains).lower(),
        "penstock.epoch.max-records": str(epoch_records),
    }
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))


def run(pipeline: Pipeline, elements: list[Element], env: StreamExecutionEnvironment) -> list[str]:
    """The results of all ends of a pipeline as text, sorted."""
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[1])
    source = env.from_collection(elements).assign_timestamps_and_watermarks(times)
    first, *others = pipeline.build(source)
    return shown((first.union(*others) if others else first).execute_and_collect())


def expected(pipeline: Pipeline, elements: list[Element]) -> list[str]:
    return shown(pipeline.expected([(copy.deepcopy(element), element[1]) for element in elements]))


def shown(elements: Iterable[Any]) -> list[str]:
    return sorted(repr(list(element)) for element in elements)
