"""Reduces the elements of a window before the exchange: the sender sends one partial result per key and window.

Only functions for which grouping does not matter are combined (`datastream.windowing.decomposition`). Partial results
are held back, at most until the watermark that ends their window or the end of the epoch. The elements of a key and
window are reduced in the order of their arrival, except for sliding windows and sessions. A partial result of a sliding
window covers elements that are in the same windows, and it may overtake other elements of some of these windows;
sessions that are joined are reduced in any order. So there the order must not matter either. The partial results of an
aggregate function are accumulators.

An element that is None begins no partial result. Whether a function accepts it depends on what the window already
holds, which only the window operator knows. So it is sent as it is, after everything that came before it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.own_copies import own_copy
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.window import EventTimeSessionWindows
from penstock.datastream.windowing.windows import TOUCHING, has_ended
from penstock.graph.descriptions import WindowDescription
from penstock.graph.job_graph import JobEdge, JobGraph, JobVertex
from penstock.graph.partitioners import CustomPartitioner, KeyGroupStreamPartitioner
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.batch import Timestamps, call_each
from penstock.runtime.call_sites import CallSite, Line
from penstock.runtime.generated_loop import GeneratedLoop, LoopScope, Source, Unbuilt, filled, source_of
from penstock.runtime.hashable_keys import hashable_keys
from penstock.runtime.latency import LatencyMarker
from penstock.runtime.outputs import ColumnMaker, EdgeTarget
from penstock.runtime.partitioning import ByKeyGroup
from penstock.runtime.rows import Row
from penstock.runtime.windowing.accumulation import reduce_of
from penstock.runtime.windowing.slots import Slot, Slots

if TYPE_CHECKING:
    from penstock.runtime.columns import Columns

MOST_HELD = 100_000
"""If an edge holds more partial results than this, it sends all of them."""
_TRIAL_RECORDS = 50_000
"""After so many elements, an edge decides whether it continues to combine."""
_LEAST_REDUCTION = 1.5
"""With fewer elements per partial result than this, combining costs more than it saves."""


_LOOK_UP = """\
try:
    {found} = get(key)
except TypeError_of_python:  # The key is not hashable, for example a list.
    key = hashable_of_python(key)
    {found} = get(key)"""
_TOUCHING_PART = TOUCHING.format(start="start", end="end", other_start="part[0]", other_end="part[1]")


_SESSION_LOOP = f"""\
def combine(values, times, parts, ended):
    get = parts.get
    for value, start in zip(values, times):
        key = {{select}}
        end = start + gap
        {{look_up}}
        if part is not None and {_TOUCHING_PART}:
            held = part[2]
            part[2] = {{added}}
            if end > part[1]:
                part[1] = end
            elif start < part[0]:
                part[0] = start
        else:
            {{begin}}
            if part is not None:
                ended.append((key, part))
            parts[key] = [start, end, {{first}}]
"""


class ReceivingWindow:
    """The function of the window operator after the exchange, called before the exchange.

    The generated loops do most of the work; this class handles the elements that they cannot. Its frame on the stack
    makes a failure count as one of the window operator.
    """

    def __init__(self, node: StreamNode) -> None:
        self.name = node.name
        self.made_at = node.made_at
        description = cast(WindowDescription, node.operator)
        self.aggregate: AggregateFunction | None = description.aggregate_function
        self.reduce: Any = None if self.aggregate is not None else reduce_of(description.reduce_function)

    def added(self, held: Any, value: Any) -> Any:
        """The partial result after `value`; `held` is the one before, None for the first element."""
        if self.aggregate is not None:
            return self.aggregate.add(value, self.aggregate.create_accumulator() if held is None else held)
        return value if held is None else self.reduce(held, value)


class CombiningEdgeTarget(EdgeTarget):
    """An edge into a window operator that sends partial results."""

    only_reads = False  # The user's reduce function may change its arguments.

    resumes_after_idleness: bool
    """True if combining resumes with the first watermark after idleness; otherwise it stays off."""

    def __init__(
        self,
        edge: JobEdge,
        subtask: int,
        parallelism: int,
        target_parallelism: int,
        target_max_parallelism: int,
        ready: list[Row],
        receiver: StreamNode,
    ) -> None:
        super().__init__(edge, subtask, parallelism, target_parallelism, target_max_parallelism, ready)
        self.scope = LoopScope(locals={"zip": zip})
        receiver = replace(receiver, operator=own_copy(receiver.operator))
        self.description = cast(WindowDescription, receiver.operator)
        self.select: Callable[[Any], Any] = self.description.key_selector
        if self.description.is_all:
            self.dealer = ByKeyGroup(len(self._targets), target_max_parallelism, self.select)
        self.window = ReceivingWindow(receiver)
        self.watermark = MIN_LONG_VALUE
        self.column_maker: ColumnMaker | None = None
        """None if partial results are not sent in columns."""
        self._is_suspended = False
        self.is_worthwhile = True
        """False if combining was given up for good, so that elements are sent as they are."""
        self._records_combined, self._partials_made = 0, 0
        """Since the last decision whether combining is worthwhile."""
        self._has_slow_keys = False
        """True if there were keys, lists for example, that take long to look up."""

    @cached_property
    def loop(self) -> GeneratedLoop:
        """Selects the key, looks it up and reduces in one loop, because a busy job spends most of its time here."""
        return self.scope.compile(self._source())

    def generated_sources(self) -> list[Source]:
        return [self._source()]

    def _source(self) -> Source:
        return source_of(self.loop_lines(self.scope), "combining of records before the exchange")

    @abstractmethod
    def loop_lines(self, scope: LoopScope) -> list[Line]:
        """The loop that combines; the names that it refers to are added to `scope`."""

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        if not self.is_worthwhile or self._is_suspended or timestamps is None or timestamps[0] is None:
            self.push_as_they_are(values, timestamps)
            return
        times = cast("Sequence[int]", timestamps)
        try:
            earliest, latest = min(times), max(times)
        except TypeError:  # Some elements have no timestamp. The window operator refuses them.
            self.push_as_they_are(values, timestamps)
            return
        if earliest == MIN_LONG_VALUE:  # The same.
            self.push_as_they_are(values, timestamps)
            return
        self.combine(values, times, earliest, latest)
        self._after_combining()

    def looking_up(self, scope: LoopScope, found: str, record: str | tuple[str, ...] = "value") -> list[Line]:
        """The lines of a loop that look up the `key` of a record; `get` is the method of a dictionary."""
        scope.locals |= {"TypeError_of_python": TypeError, "hashable_of_python": self.hashable}
        # A key may have a hash of the user's.
        return [Line(text, CallSite(record, self.dealer)) for text in _LOOK_UP.format(found=found).splitlines()]

    def hashable(self, key: Any) -> Any:
        [made] = hashable_keys([key])
        self._has_slow_keys = self._has_slow_keys or made is not key
        return made

    def _after_combining(self) -> None:
        """Stop combining if it is not worthwhile."""
        if self._records_combined <= _TRIAL_RECORDS and not self._has_slow_keys:
            return
        is_reduced = self._records_combined >= self._partials_made * _LEAST_REDUCTION
        self.is_worthwhile = is_reduced and not self._has_slow_keys
        self._records_combined = self._partials_made = 0
        if not self.is_worthwhile:
            self.send_all()  # The elements that follow must not overtake them.

    def count_combined(self, records: int, partials: int) -> None:
        """Count combined records, and the new partial results that they have led to."""
        self._records_combined += records
        self._partials_made += partials

    def takes_columns(self) -> bool:
        return False

    def push_columns(self, columns: Columns, values: list[Any] | None = None) -> bool:
        return False

    @abstractmethod
    def combine(self, values: list[Any], times: Sequence[int], earliest: int, latest: int) -> None:
        """Reduce elements to partial results, and hold them back."""

    @abstractmethod
    def push_as_they_are(self, values: list[Any], timestamps: Timestamps | None) -> None:
        """Send elements without combining them."""

    @abstractmethod
    def send_until(self, watermark: int) -> None:
        """Send the partial results that the receiver needs before `watermark`."""

    @abstractmethod
    def send_all(self) -> None:
        """Send all partial results."""

    def deliver(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Send values whose keys are known."""
        self.records_out += len(keys)
        dealer = cast(ByKeyGroup, self.dealer)
        columns = None if self.column_maker is None else self.column_maker.of(values)
        timed = None if columns is None else columns.with_timestamps(timestamps)
        dealt = None if timed is None else dealer.deal_keyed_columns(keys, timed)
        if dealt is not None:
            self.send_columns(dealt)
            return
        if columns is not None:
            cast(ColumnMaker, self.column_maker).failed()
        self.send(dealer.deal_keyed(keys, values, timestamps))

    # --- when partial results are sent -------------------------------------------------------------------------------

    def push_watermark(self, watermark: int) -> None:
        self.watermark = watermark
        self._is_suspended = self._is_suspended and not self.resumes_after_idleness
        self.send_until(watermark)
        super().push_watermark(watermark)

    def push_status(self, idle: bool) -> None:
        self.send_all()
        # While this channel is idle, other channels may advance the receiver's watermark past the last one that was
        # sent here. Then only the receiver knows which elements are late, so it must get them one by one. That is still
        # so when the channel is active again, because it may remain behind the others for a long time.
        self._is_suspended = self._is_suspended or idle
        super().push_status(idle)

    def push_latency_marker(self, marker: LatencyMarker) -> None:
        self.send_all()
        super().push_latency_marker(marker)

    def push_end_of_data(self) -> None:
        self.send_all()
        super().push_end_of_data()

    def end_epoch(self) -> None:
        self.send_all()
        super().end_epoch()

    def memory(self) -> Any:
        return super().memory(), self.watermark, self._is_suspended, self.is_worthwhile

    def restore(self, memory: Any) -> None:
        if isinstance(memory, tuple):
            dealer, self.watermark, self._is_suspended, self.is_worthwhile = memory
            super().restore(dealer)
        else:
            # The edge did not combine when this was saved, so the last watermark that it sent is not known.
            self._is_suspended = True


class AlignedCombiner(CombiningEdgeTarget):
    """For tumbling and sliding windows: a partial result covers one key and slot; its timestamp is the slot's start.

    The window operator treats a partial result like any other element, unless it is an accumulator.
    """

    resumes_after_idleness = True

    def __init__(self, *edge: Any) -> None:
        super().__init__(*edge)
        self._slots = Slots(self.description.assigner)
        self._open: dict[Slot, dict[Any, Any]] = {}
        """Partial results by slot and key."""
        self._held = 0
        """How many partial results there are in all slots."""

    def loop_lines(self, scope: LoopScope) -> list[Line]:
        head = ["def combine(values, partials):", "    get = partials.get", "    for value in values:"]
        return [*map(Line, head), *(line.indented("        ") for line in self.adding(scope, "value"))]

    def adding(self, scope: LoopScope, record: str | Unbuilt) -> list[Line]:
        """The lines of a loop that add a record to the dictionary `partials`; `get` is its method."""
        key = scope.call("select", self.select, record)
        names = record.items if isinstance(record, Unbuilt) else record
        aggregate = self.window.aggregate
        if aggregate is None:
            if isinstance(record, Unbuilt):
                begin = [Line(f"    partials[key] = {record.text}")]
            else:
                scope.locals["send_none"] = self.send_none
                begin = [Line(f"    if {record} is None:"), Line("        send_none(key, partials)")]
                begin += [Line("    else:"), Line(f"        partials[key] = {record}")]
            added = scope.call("reduce", self.window.reduce, "held", record)
            adding = scope.line(f"    partials[key] = {added}", "reduce", names, self.window)
        else:
            scope.locals["create"] = aggregate.create_accumulator
            added = scope.call("reduce", aggregate.add, record, "held")
            adding = scope.line(f"    partials[key] = {added}", "reduce", names, self.window)
            begin = [Line("    held = create()", CallSite(names, self.window)), adding]
        look_up = self.looking_up(scope, "held", names)
        selecting = scope.line(f"key = {key}", "select", names, self.dealer)
        return [selecting, *look_up, Line("if held is None:"), *begin, Line("else:"), adding]

    # --- combining in the loop of a fused operator -------------------------------------------------------------------

    def takes(self, timestamps: Timestamps) -> bool:
        """True if another loop may combine elements with these timestamps: none is missing, and none is late."""
        if not self.is_worthwhile or self._is_suspended:
            return False
        try:
            earliest = min(timestamps)  # type: ignore[type-var]
        except TypeError:
            return False
        if earliest is None or earliest == MIN_LONG_VALUE:
            return False
        return not self._has_ended(self._slots.at(earliest), self.watermark)

    def open_slot(self, timestamp: int) -> tuple[int, int, dict[Any, Any]]:
        """The start and the end of the slot of a timestamp, and the slot's partial results."""
        slot = self._slots.at(timestamp)
        return *slot, self._open.setdefault(slot, {})

    def add_one(self, partials: dict[Any, Any], value: Any) -> None:
        key = self.hashable(cast(ByKeyGroup, self.dealer).keys_of([value])[0])
        held = partials.get(key)
        if value is None and held is None and self.window.aggregate is None:
            self.send_none(key, partials)
        else:
            partials[key] = self.window.added(held, value)

    def send_none(self, key: Any, partials: dict[Any, Any]) -> None:
        """Send None, an element of the slot with these partial results, after all partial results.

        Loops go on with the dictionaries of their slots, so these are emptied, not removed.
        """
        [start] = [slot.start for slot, each in self._open.items() if each is partials]
        for slot, each in self._open.items():
            self._deliver_partials(slot, each)
            if each is not partials:  # The caller counts what it has added to and taken from its own.
                self._held -= len(each)
            each.clear()
        self.deliver([key], [None], [start])

    def combined(self, records: int) -> None:
        """Called after another loop has combined this many records."""
        held = sum(map(len, self._open.values()))
        self.count_combined(records, held - self._held)
        self._held = held
        self._after_combining()

    # --- combining in this edge's own loop ---------------------------------------------------------------------------

    def push_as_they_are(self, values: list[Any], timestamps: Timestamps | None) -> None:
        count = 0 if self.window.aggregate is None or timestamps is None else _count_timed(timestamps)
        if count:
            keys = cast(ByKeyGroup, self.dealer).keys_of(values[:count])
            accumulators = call_each(lambda value: self.window.added(None, value), values[:count])
            self.deliver(keys, accumulators, cast("list[int]", list(cast(Timestamps, timestamps)[:count])))
        if count < len(values):
            # If the window takes accumulators, elements without a timestamp are left. The window operator refuses them.
            EdgeTarget.push_batch(self, values[count:], None if timestamps is None else timestamps[count:])

    def combine(self, values: list[Any], times: Sequence[int], earliest: int, latest: int) -> None:
        slot = self._slots.at(earliest)
        if latest < slot.end and not self._has_ended(slot, self.watermark):
            self._combine(slot, values)
        else:
            self._combine_by_slot(values, times)

    def _after_combining(self) -> None:
        super()._after_combining()
        if self._held > MOST_HELD:
            self.send_all()

    def _has_ended(self, slot: Slot, watermark: int) -> bool:
        """True if a window of the slot has ended. The window operator must see the slot's elements one by one, then."""
        return has_ended(self._slots.first_window_end(slot), watermark)

    def _combine_by_slot(self, values: list[Any], times: Sequence[int]) -> None:
        shares: dict[Slot, tuple[list[Any], list[int]]] = {}
        start = end = 0
        for value, timestamp in zip(values, times, strict=True):
            if not start <= timestamp < end:
                slot = self._slots.at(timestamp)
                start, end = slot
                share = shares.setdefault(slot, ([], []))
            share[0].append(value)
            share[1].append(timestamp)
            if value is None and self.window.aggregate is None:  # Elements of other slots must not overtake it.
                self.send_all()
                self.push_as_they_are(values, times)
                return
        for slot, share in shares.items():
            if self._has_ended(slot, self.watermark):
                self.push_as_they_are(*share)
            else:
                self._combine(slot, share[0])

    def _combine(self, slot: Slot, values: list[Any]) -> None:
        partials = self._open.setdefault(slot, {})
        before = len(partials)
        self.loop.run(values, partials)
        opened = len(partials) - before
        self._held += opened
        self.count_combined(len(values), opened)

    def send_until(self, watermark: int) -> None:
        for slot in [slot for slot in self._open if self._has_ended(slot, watermark)]:
            self._send_slot(slot)

    def send_all(self) -> None:
        for slot in list(self._open):
            self._send_slot(slot)

    def _send_slot(self, slot: Slot) -> None:
        partials = self._open.pop(slot)
        self._held -= len(partials)
        self._deliver_partials(slot, partials)

    def _deliver_partials(self, slot: Slot, partials: dict[Any, Any]) -> None:
        if partials:
            self.deliver(list(partials), list(partials.values()), [slot.start] * len(partials))


def _count_timed(timestamps: Timestamps) -> int:
    """How many timestamps there are before the first one that is missing."""
    missing = (at for at, timestamp in enumerate(timestamps) if timestamp is None or timestamp == MIN_LONG_VALUE)
    return next(missing, len(timestamps))


class SessionCombiner(CombiningEdgeTarget):
    """For session windows: sends parts of sessions, `(end, value)`, with the start of the part as the timestamp.

    The value is a reduced element or an accumulator. A part is what the window operator would have made of the same
    elements if nothing had happened between them. Any watermark could end the session of a part, so all parts are sent
    before each watermark. A part that is None still extends its session.
    """

    resumes_after_idleness = False

    def __init__(self, *edge: Any) -> None:
        super().__init__(*edge)
        self._gap: int = self.description.assigner.session_gap
        self.scope.locals["gap"] = self._gap
        self._parts: dict[Any, list[Any]] = {}
        """By key: a list of start, end and partial result."""

    def loop_lines(self, scope: LoopScope) -> list[Line]:
        select = scope.line(scope.call("select", self.select, "value"), "select", owner=self.dealer)
        aggregate = self.window.aggregate
        first = Line("value")
        if aggregate is None:
            scope.locals["send_none"] = self.send_none
            reduced = scope.call("reduce", self.window.reduce, "held", "value")
            added = scope.line(reduced, "reduce", owner=self.window)
            begin = [Line("if value is None: send_none(key, start, ended); continue")]
        else:
            scope.locals["create"] = aggregate.create_accumulator
            add = scope.call("reduce", aggregate.add, "value", "held")
            first = added = scope.line(add, "reduce", owner=self.window)
            begin = [Line("held = create()", CallSite(owner=self.window))]
        look_up = self.looking_up(scope, "part")
        return filled(_SESSION_LOOP, select=select, look_up=look_up, added=added, begin=begin, first=first)

    def send_none(self, key: Any, start: int, ended: list[tuple[Any, list[Any]]]) -> None:
        """Send None, an element of a session, after all parts; the loop goes on with the same dictionary and list."""
        self._send_parts([*ended, *self._parts.items()])
        ended.clear()
        self._parts.clear()
        self.deliver([key], [(start + self._gap, None)], [start])

    def push_as_they_are(self, values: list[Any], timestamps: Timestamps | None) -> None:
        self.send_all()
        times = timestamps or [None] * len(values)
        keys = cast(ByKeyGroup, self.dealer).keys_of(values)
        # The window operator refuses elements without a timestamp; its error shows the element, not an accumulator.
        count = 0 if self.window.aggregate is None else _count_timed(times)
        held = call_each(lambda value: self.window.added(None, value), values[:count]) + values[count:]
        parts = [(None if time is None else time + self._gap, each) for time, each in zip(times, held, strict=True)]
        self.deliver(keys, parts, cast("list[int]", times))

    def combine(self, values: list[Any], times: Sequence[int], earliest: int, latest: int) -> None:
        if has_ended(earliest + self._gap, self.watermark):
            # Some elements may be late. The window operator decides that for each of them.
            self.push_as_they_are(values, times)
            return
        ended: list[tuple[Any, list[Any]]] = []
        parts, before = self._parts, len(self._parts)
        self.loop.run(values, times, parts, ended)
        self.count_combined(len(values), len(parts) - before + len(ended))
        self._send_parts(ended)
        if len(parts) > MOST_HELD:
            self.send_all()

    def send_until(self, watermark: int) -> None:
        self.send_all()

    def send_all(self) -> None:
        parts, self._parts = self._parts, {}
        self._send_parts(list(parts.items()))

    def _send_parts(self, parts: list[tuple[Any, list[Any]]]) -> None:
        if parts:
            keys = [key for key, _ in parts]
            self.deliver(keys, [(end, value) for _, (_, end, value) in parts], [part[0] for _, part in parts])


def combines_on_the_way(job_graph: JobGraph, vertex: JobVertex) -> bool:
    """True if a vertex begins with a window operator and all its inputs combine their elements."""
    window = vertex.head.operator
    if not isinstance(window, WindowDescription) or not window.combines:
        return False
    # The elements of a window_all go to its only subtask in any case. A user's own partitioner must see each element.
    partitioners = [edge.partitioner for edge in job_graph.in_edges(vertex.id)]
    if window.is_all:
        return vertex.parallelism == 1 and not any(isinstance(each, CustomPartitioner) for each in partitioners)
    return all(isinstance(each, KeyGroupStreamPartitioner) for each in partitioners)


def takes_session_parts(job_graph: JobGraph, vertex: JobVertex) -> bool:
    """True if a vertex receives parts of sessions instead of elements."""
    return combines_on_the_way(job_graph, vertex) and isinstance(_assigner_of(vertex), EventTimeSessionWindows)


def takes_accumulators(job_graph: JobGraph, vertex: JobVertex) -> bool:
    """True if a vertex receives accumulators instead of elements."""
    return combines_on_the_way(job_graph, vertex) and cast(WindowDescription, vertex.head.operator).merge is not None


def combining_edge(receiver: JobVertex, *edge: Any) -> CombiningEdgeTarget:
    """An edge to a vertex for which `combines_on_the_way`; `edge` are the arguments of any `EdgeTarget`."""
    kind = SessionCombiner if isinstance(_assigner_of(receiver), EventTimeSessionWindows) else AlignedCombiner
    return kind(*edge, receiver.head)


def _assigner_of(vertex: JobVertex) -> Any:
    return cast(WindowDescription, vertex.head.operator).assigner
