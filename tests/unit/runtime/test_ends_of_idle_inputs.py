"""Windows over the results of windows, where sources fall idle, wake up and end in any order: nothing is lost.

    source 0 ─┬─▶ windows of keys 0 ─┬─▶ windows of all
    source 1 ─┴─▶ windows of keys 1 ─┘

Each channel keeps its order, and which channel moves next is random. A record is *owed* if it is later than every
watermark that was sent before it, apart from the ends. Of those, each must be in its window, in both stages.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Time
from penstock.common.constants import MAX_LONG_VALUE
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.runtime.chunk import Status, Watermark
from penstock.runtime.watermarks import InputWatermarks
from penstock.testing import OperatorHarness

SIZE_MS = 10


def sums() -> OperatorHarness:
    """Of (key, number): a sum for each window and key."""
    windows = TumblingEventTimeWindows.of(Time.milliseconds(SIZE_MS))
    return OperatorHarness.of(
        lambda stream: stream.key_by(lambda pair: pair[0]).window(windows).reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


@dataclass
class Element:
    value: Any
    timestamp: int


@dataclass
class Node:
    """An operator behind its valves. What it emits goes into a channel to the next one."""

    harness: OperatorHarness
    inputs: list[int]
    """Which input of the operator each channel belongs to."""
    receive: Callable[[Any], None] = lambda event: None
    valve: InputWatermarks = field(init=False)
    _taken: int = 0

    def __post_init__(self) -> None:
        self.valve = InputWatermarks(self.inputs)

    def take(self, channel: int, event: Any) -> None:
        match event:
            case Element(value, timestamp):
                self.harness.element(value, timestamp)
            case Watermark(timestamp):
                self._apply(self.valve.on_watermark(channel, timestamp))
            case Status(is_idle):
                self._apply(self.valve.on_status(channel, is_idle))
        events = self.harness.recorded.events
        for kind, value, timestamp in events[self._taken :]:
            match kind:
                case "element":
                    self.receive(Element(value, timestamp))
                case "watermark":
                    self.receive(Watermark(timestamp))
                case "status":
                    self.receive(Status(value))
        self._taken = len(events)

    def _apply(self, marks: list[Any]) -> None:
        for mark in marks:
            if isinstance(mark, Watermark):
                self.harness.watermark(mark.timestamp)
            else:
                self.harness.idle(mark.is_idle)


class Network:
    def __init__(self, sources: int, first_inputs: list[int]) -> None:
        self.keyed = [Node(sums(), first_inputs) for _ in range(2)]
        self.all = Node(sums(), [0, 0])
        self.channels: dict[tuple[Node, int] | Any, deque[Any]] = {}
        for at, node in enumerate(self.keyed):
            for source in range(sources):
                self.channels[("keyed", at, source)] = deque()
            self.channels[("all", 0, at)] = deque()
            # One key for all in the second stage.
            node.receive = lambda event, at=at: self.channels[("all", 0, at)].append(
                Element(("all", event.value[1]), event.timestamp) if isinstance(event, Element) else event
            )

    def send(self, source: int, event: Any) -> None:
        """A record goes to the subtask of its key, everything else to both."""
        for at in range(2):
            if not isinstance(event, Element) or event.value[0] == at:
                self.channels[("keyed", at, source)].append(event)

    def step(self, choose: Callable[[list[Any]], Any]) -> bool:
        """Deliver one event of some channel; False if nothing is left."""
        waiting = [at for at, queue in self.channels.items() if queue]
        if not waiting:
            return False
        stage, node, channel = at = choose(waiting)
        (self.keyed[node] if stage == "keyed" else self.all).take(channel, self.channels[at].popleft())
        return True

    def settle(self, choose: Callable[[list[Any]], Any]) -> None:
        while self.step(choose):
            pass

    def results(self) -> Counter[int]:
        """The sums of all windows, by the window's last millisecond."""
        found: Counter[int] = Counter()
        for (_, total), timestamp in self.all.harness.output_with_timestamps:
            found[timestamp] += total
        return found


class Run:
    """A random run: in each turn some sources are active, and in the end all of them end, active or idle."""

    def __init__(self, data: st.DataObject, sources: int, inputs: list[int]) -> None:
        self.draw = data.draw
        self.network = Network(sources, inputs)
        self.sources = range(sources)
        self.idle = [False] * sources
        self.ended = [False] * sources
        self.now = 0
        """The largest watermark that was sent, apart from the ends."""
        self.owed: Counter[int] = Counter()

    def choose(self, waiting: list[Any]) -> Any:
        return self.draw(st.sampled_from(waiting))

    def record(self, source: int) -> None:
        timestamp = self.now + self.draw(st.integers(1, 2 * SIZE_MS))
        self.network.send(source, Element((self.draw(st.integers(0, 1)), 1), timestamp))
        self.owed[timestamp // SIZE_MS * SIZE_MS + SIZE_MS - 1] += 1

    def status(self, source: int, is_idle: bool) -> None:
        if self.idle[source] != is_idle:
            self.idle[source] = is_idle
            self.network.send(source, Status(is_idle))

    def end(self, source: int) -> None:
        """With its last records, which it may bring although it was idle."""
        self.status(source, False)
        for _ in range(self.draw(st.integers(0, 2))):
            self.record(source)
        self.network.send(source, Watermark(MAX_LONG_VALUE))
        self.ended[source] = True

    def turn(self) -> None:
        left = [each for each in self.sources if not self.ended[each]]
        active = self.draw(st.sets(st.sampled_from(left))) if left else set()
        for source in left:
            self.status(source, source not in active)
            if source in active:
                self.network.send(source, Watermark(self.now))
        # A source that wakes up may be overtaken by others' watermarks, in Flink and here: it waits until all know.
        self.network.settle(self.choose)
        for _ in range(self.draw(st.integers(0, 6)) if active else 0):
            source = self.draw(st.sampled_from(sorted(active)))
            self.record(source)
            for _ in range(self.draw(st.integers(0, 3))):
                self.network.step(self.choose)
        if active and self.draw(st.booleans()):
            self.end(self.draw(st.sampled_from(sorted(active))))
        going_on = [source for source in sorted(active) if not self.ended[source]]
        if going_on:
            self.now += self.draw(st.integers(0, 2 * SIZE_MS))
        for source in going_on:
            self.network.send(source, Watermark(self.now))
        self.network.settle(self.choose)

    def run(self) -> None:
        for _ in range(self.draw(st.integers(1, 4))):
            self.turn()
        for source in self.draw(st.permutations([each for each in self.sources if not self.ended[each]])):
            self.end(source)
            for _ in range(self.draw(st.integers(0, 6))):
                self.network.step(self.choose)
        self.network.settle(self.choose)
        assert self.network.results() == self.owed


@settings(max_examples=300)
@given(st.data(), st.integers(1, 3))
def test_sources_that_fall_idle_and_end_in_any_order_lose_nothing(data, sources):
    Run(data, sources, [0] * sources).run()


@settings(max_examples=200)
@given(st.data(), st.lists(st.integers(0, 1), min_size=2, max_size=3).filter(lambda each: set(each) == {0, 1}))
def test_the_same_where_sources_are_different_inputs_of_an_operator(data, inputs):
    Run(data, len(inputs), inputs).run()
