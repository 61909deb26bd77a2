"""A reference model of windows, written for the tests: plain lists of panes, searched by brute force.

It shares nothing with the operator but the words: settings are plain data, panes are kept in lists, timers are found by
looking at every pane. Elements are (key, number, text) tuples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby

END = 2**63 - 1
BEGIN = -(2**63)


@dataclass(frozen=True)
class Assign:
    """kind: tumbling, sliding, session, dynamic, count, count-sliding or global; `event`: by event time."""

    kind: str
    event: bool = True
    size: int = 0
    slide: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Fire:
    """kind: event, processing, count, continuous-event, continuous-processing, delta, never or end."""

    kind: str
    number: int = 0
    purging: bool = False
    timeout: int = 0
    reset_timeout: bool = False
    clear_on_timeout: bool = True


@dataclass(frozen=True)
class Evict:
    """kind: count, time or delta."""

    kind: str
    number: int
    after: bool = False


@dataclass(frozen=True)
class Settings:
    assign: Assign
    fire: Fire
    evict: Evict | None = None
    lateness: int = 0
    late_tag: bool = False
    contents: str = "list"
    """list, reduce or aggregate"""


@dataclass
class Pane:
    key: str
    start: int
    end: int
    elements: list = field(default_factory=list)
    """(element, timestamp) in order of arrival."""
    timers: set = field(default_factory=set)
    """(is_event_time, time)"""
    count: int = 0
    fire_time: int | None = None
    last: tuple | None = None
    deadline: int | None = None

    @property
    def last_time(self):
        return self.end - 1 if self.end != END else END


class WindowModel:
    """Takes the same steps as the operator and returns what each must emit."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.panes: list[Pane] = []
        self.seen: dict[str, int] = {}
        self.watermark = BEGIN
        self.now = 0
        self.dropped = 0
        self.late: list = []
        self.out: list = []

    # --- steps: each returns groups of outputs; the order within a group is not fixed ---------------------------------

    def element(self, element, timestamp):
        self.out = []
        key, is_skipped = element[0], True
        for start, end in self._windows(element, timestamp):
            pane = self._open(key, start, end)
            if self.settings.assign.event and self._cleanup(pane) <= self.watermark:
                self.panes.remove(pane)
                continue
            is_skipped = False
            pane.elements.append((element, timestamp))
            self._act(pane, self._on_element(pane, element, timestamp))
            if self._cleanup(pane) != END:
                pane.timers.add((self.settings.assign.event, self._cleanup(pane)))
        if is_skipped and self.settings.assign.event and timestamp + self.settings.lateness <= self.watermark:
            if self.settings.late_tag:
                self.late.append((element, timestamp))
            else:
                self.dropped += 1
        return [[result] for result in self.out]

    def advance_watermark(self, watermark):
        self.watermark = watermark
        return self._fire_timers(True, watermark)

    def advance_clock(self, now):
        self.now = now
        return self._fire_timers(False, now)

    # --- windows ------------------------------------------------------------------------------------------------------

    def _windows(self, element, timestamp):
        assign = self.settings.assign
        time = timestamp if assign.event else self.now
        match assign.kind:
            case "global":
                return [(BEGIN, END)]
            case "session":
                return [(time, time + assign.size)]
            case "dynamic":
                return [(time, time + 1 + element[1])]
            case "count" | "count-sliding":
                return self._count_windows(element[0])
        step = assign.size if assign.kind == "tumbling" else assign.slide
        first = math.floor((time - assign.offset) / step) * step + assign.offset
        return [(s, s + assign.size) for s in range(first, time - assign.size, -step)]

    def _count_windows(self, key):
        assign = self.settings.assign
        number = self.seen.get(key, 0)
        self.seen[key] = number + 1
        step = assign.slide if assign.kind == "count-sliding" else assign.size
        # The id of a count window takes the place of its start.
        return [(i, END) for i in range(number // step, -1, -1) if i * step <= number < i * step + assign.size]

    def _open(self, key, start, end):
        mine = [pane for pane in self.panes if pane.key == key]
        if self.settings.assign.kind not in ("session", "dynamic"):
            for pane in mine:
                if (pane.start, pane.end) == (start, end):
                    return pane
            met = []
        else:
            met = sorted((p for p in mine if p.start <= end and start <= p.end), key=lambda pane: pane.start)
            start, end = min([start, *(p.start for p in met)]), max([end, *(p.end for p in met)])
            if len(met) == 1 and (met[0].start, met[0].end) == (start, end):
                return met[0]
        pane = Pane(key, start, end)
        self.panes.append(pane)
        for old in met:
            pane.elements += old.elements
            pane.count += old.count
            if old.fire_time is not None:
                pane.fire_time = old.fire_time if pane.fire_time is None else min(pane.fire_time, old.fire_time)
            self.panes.remove(old)
        if met:
            self._on_merge(pane)
        return pane

    def _cleanup(self, pane):
        lateness = self.settings.lateness if self.settings.assign.event else 0
        return min(pane.last_time + lateness, END)

    # --- triggers: (fire, purge) --------------------------------------------------------------------------------------

    def _on_element(self, pane, element, timestamp):
        fire = self._nested_on_element(pane, element, timestamp)
        if self.settings.fire.timeout:
            if fire:
                self._forget(pane)
            else:
                if pane.deadline is not None and self.settings.fire.reset_timeout:
                    pane.timers.discard((False, pane.deadline))
                    pane.deadline = None
                if pane.deadline is None:
                    pane.deadline = self.now + self.settings.fire.timeout
                    pane.timers.add((False, pane.deadline))
        return fire, fire and self.settings.fire.purging

    def _nested_on_element(self, pane, element, timestamp):
        fire = self.settings.fire
        match fire.kind:
            case "event" | "continuous-event":
                if pane.last_time <= self.watermark:
                    return True
                pane.timers.add((True, pane.last_time))
                if fire.kind == "continuous-event" and pane.fire_time is None:
                    self._next_fire(pane, math.trunc(timestamp / fire.number) * fire.number, True)
            case "processing":
                pane.timers.add((False, pane.last_time))
            case "continuous-processing" if pane.fire_time is None:
                self._next_fire(pane, self.now // fire.number * fire.number, False)
            case "count":
                pane.count += 1
                if pane.count >= fire.number:
                    pane.count = 0
                    return True
            case "delta":
                if pane.last is None:
                    pane.last = element
                elif element[1] - pane.last[1] > fire.number:
                    pane.last = element
                    return True
            case "end":
                pane.timers.add((True, pane.last_time))
        return False

    def _on_timer(self, pane, is_event, time):
        fire = self._nested_on_timer(pane, is_event, time)
        if self.settings.fire.timeout:
            if self.settings.fire.clear_on_timeout:
                self._forget(pane)
            return True, fire and self.settings.fire.purging
        return fire, fire and self.settings.fire.purging

    def _nested_on_timer(self, pane, is_event, time):
        match self.settings.fire.kind, is_event:
            case ("event" | "end", True):
                return time == pane.last_time
            case ("processing", False):
                return True
            case ("continuous-event", True) | ("continuous-processing", False):
                if time == pane.last_time:
                    return True
                if pane.fire_time == time:
                    self._next_fire(pane, time, is_event)
                    return True
        return False

    def _on_merge(self, pane):
        match self.settings.fire.kind:
            case "event" if pane.last_time > self.watermark:
                pane.timers.add((True, pane.last_time))
            case "processing" if pane.last_time > self.now:
                pane.timers.add((False, pane.last_time))
            case "continuous-event" | "continuous-processing" if pane.fire_time is not None:
                pane.timers.add((self.settings.fire.kind == "continuous-event", pane.fire_time))

    def _next_fire(self, pane, time, is_event):
        pane.fire_time = min(time + self.settings.fire.number, pane.last_time)
        if is_event and pane.last_time == self.watermark == END:
            pane.fire_time = END
        pane.timers.add((is_event, pane.fire_time))

    def _forget(self, pane):
        """Clear a trigger with a timeout and the one inside it."""
        if pane.deadline is not None:
            pane.timers.discard((False, pane.deadline))
            pane.deadline = None
        match self.settings.fire.kind:
            case "event":
                pane.timers.discard((True, pane.last_time))
            case "processing":
                pane.timers.discard((False, pane.last_time))
            case "continuous-event" | "continuous-processing" if pane.fire_time is not None:
                pane.timers.discard((self.settings.fire.kind == "continuous-event", pane.fire_time))
                pane.fire_time = None
        pane.count, pane.last = 0, None

    # --- firing -------------------------------------------------------------------------------------------------------

    def _fire_timers(self, is_event, until):
        groups = []
        while due := [(t, i) for i, p in enumerate(self.panes) for e, t in p.timers if e == is_event and t <= until]:
            time, at = min(due)
            pane = self.panes[at]
            pane.timers.discard((is_event, time))
            self.out = []
            self._act(pane, self._on_timer(pane, is_event, time))
            if is_event == self.settings.assign.event and time == self._cleanup(pane):
                self.panes.remove(pane)
            groups += [(time, result) for result in self.out]
        return [[result for _, result in group] for _, group in groupby(groups, key=lambda each: each[0])]

    def _act(self, pane, decision):
        fire, purge = decision
        if fire and pane.elements:
            if self.settings.evict and not self.settings.evict.after:
                self._evict(pane)
            self.out.append((self._result(pane), pane.last_time))
            if self.settings.evict and self.settings.evict.after:
                self._evict(pane)
        if purge:
            pane.elements = []

    def _evict(self, pane):
        evict, elements = self.settings.evict, pane.elements
        match evict.kind:
            case "count":
                pane.elements = elements[-evict.number :]
            case "time":
                newest = max(timestamp for _, timestamp in elements)
                pane.elements = [e for e in elements if newest - e[1] < evict.number]
            case "delta":
                pane.elements = [e for e in elements if elements[-1][0][1] - e[0][1] < evict.number]

    def _result(self, pane):
        """The texts of the pane in order, as each kind of contents shows them."""
        texts = [element[2] for element, _ in pane.elements]
        if self.settings.contents == "list":
            return pane.key, pane.start, pane.end, tuple(texts)
        if self.settings.contents == "reduce":
            return pane.key, pane.elements[-1][0][1], "".join(texts)
        return texts
