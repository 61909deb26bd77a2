"""Window TVFs without an aggregate: each row once for each of its windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction, RuntimeContext
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state
from penstock.table.operators.windows import AlignedWindows, SessionWindows, WindowClock, windows_of
from penstock.table.rows import NANOS_PER_MILLI, RowTuple


def _window_columns(clock: WindowClock, start_ms: int, end_ms: int) -> tuple[int, int, int]:
    return start_ms * NANOS_PER_MILLI, end_ms * NANOS_PER_MILLI, clock.timer_ms(end_ms) * NANOS_PER_MILLI


@dataclass(frozen=True)
class WindowedRows:
    """Rows with their windows. Rows without a time belong to none."""

    windows: AlignedWindows
    clock: WindowClock

    def __call__(self, rows: list[RowTuple]) -> list[RowTuple]:
        made = []
        for row in rows:
            if row[self.clock.column] is not None:
                for start, end in self.windows.windows_at(self.clock.local_ms(row, None)):
                    made.append((*row, *_window_columns(self.clock, start, end)))
        return made


class WindowedByArrival(ProcessFunction):
    """Rows with the windows of the time at which they arrive."""

    def __init__(self, windows: AlignedWindows, clock: WindowClock) -> None:
        self.windows = windows
        self.clock = clock

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        for start, end in self.windows.windows_at(self.clock.local_ms(value, ctx.timer_service())):
            yield (*value, *_window_columns(self.clock, start, end))


class SessionRows(KeyedProcessFunction):
    """The rows of a session, when it is complete."""

    def __init__(self, windows: SessionWindows, clock: WindowClock) -> None:
        self.windows = windows
        self.clock = clock

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sessions = map_state(runtime_context, "sessions")

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        start = self.clock.local_ms(value, timers)
        end = start + self.windows.gap_ms
        touched = sorted(each for each in self.sessions if each[0] <= end and each[1] >= start)
        merged_end = max([end, *(each[1] for each in touched)])
        if self.clock.is_over(merged_end, timers):
            return
        rows = [row for session in touched for row in self.sessions.get(session)]
        for session in touched:
            self.sessions.remove(session)
            if session[1] != merged_end:
                self.clock.delete(session[1], timers)
        self.clock.register(merged_end, timers)
        self.sessions.put((min([start, *(each[0] for each in touched)]), merged_end), [*rows, value])
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        end = self.clock.window_end(timestamp)
        for session in [each for each in self.sessions if each[1] == end]:
            rows = self.sessions.get(session)
            self.sessions.remove(session)
            for row in rows:
                yield (*row, *_window_columns(self.clock, *session))


def window_table_function(at: Translation) -> TableStream:
    node, source = at.node, at.input
    if source.is_changelog:
        raise node.unsupported("a window table function over rows that change")
    windows, clock = windows_of(node, node["windowing"], at.context.time_zone)
    if isinstance(windows, SessionWindows):
        keys = node["windowing"]["window"].get("partition_key_indices") or []
        return at.keyed_process(tuple(keys), SessionRows(windows, clock), is_changelog=False)
    if not isinstance(windows, AlignedWindows):
        raise node.unsupported("a window table function over windows")
    if not clock.is_event_time:
        return at.then(source.stream.process(WindowedByArrival(windows, clock)), False)
    return TableStream(at.on_rows(WindowedRows(windows, clock)), node.row_type, False)
