"""Random window settings and streams, and how to run them on the operator."""

from __future__ import annotations

import operator

from hypothesis import strategies as st
from window_model import END, Assign, Evict, Fire, Settings

from penstock.common.typeinfo import Types
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaEvictor,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.chunk import Watermark
from penstock.runtime.watermarks import StatusWatermarkValve

LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
SESSIONS = ("session", "dynamic")

key_of = operator.itemgetter(0)


def difference(old, new):
    return new[1] - old[1]


def gap_of(element):
    return 1 + element[1]


def join(left, right):
    return left[0], right[1], left[2] + right[2]


class Texts(AggregateFunction):
    """Collects texts in a list that is its own result: a hard case, because it keeps changing."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[2])
        return accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Contents(ProcessWindowFunction):
    """Emits (key, start, end, texts); the windows without an end show their id as start."""

    def process(self, key, context, elements):
        window = context.window()
        start, end = (window.start, window.end) if hasattr(window, "start") else (getattr(window, "id", -(2**63)), END)
        yield key, start, end, tuple(element[2] for element in elements)


# --- settings -> the operator's description ------------------------------------------------


def build_assigner(assign: Assign):
    event = assign.event
    match assign.kind:
        case "tumbling":
            return (TumblingEventTimeWindows if event else TumblingProcessingTimeWindows)(assign.size, assign.offset)
        case "sliding":
            kind = SlidingEventTimeWindows if event else SlidingProcessingTimeWindows
            return kind(assign.size, assign.slide, assign.offset)
        case "session":
            return (EventTimeSessionWindows if event else ProcessingTimeSessionWindows)(assign.size)
        case "dynamic":
            return (DynamicEventTimeSessionWindows if event else DynamicProcessingTimeSessionWindows)(gap_of)
        case "count":
            return CountTumblingWindowAssigner(assign.size)
        case "count-sliding":
            return CountSlidingWindowAssigner(assign.size, assign.slide)
    return GlobalWindows.create()


def build_trigger(fire: Fire):
    trigger = {
        "event": lambda: EventTimeTrigger(),
        "processing": lambda: ProcessingTimeTrigger(),
        "count": lambda: CountTrigger(fire.number),
        "continuous-event": lambda: ContinuousEventTimeTrigger(fire.number),
        "continuous-processing": lambda: ContinuousProcessingTimeTrigger(fire.number),
        "delta": lambda: DeltaTrigger.of(fire.number, difference),
        "never": lambda: NeverTrigger(),
        "end": lambda: EndOfStreamTrigger(),
    }[fire.kind]()
    trigger = PurgingTrigger.of(trigger) if fire.purging else trigger
    if fire.timeout:
        return ProcessingTimeoutTrigger(trigger, fire.timeout, fire.reset_timeout, fire.clear_on_timeout)
    return trigger


def build_evictor(evict: Evict | None):
    if evict is None:
        return None
    if evict.kind == "delta":
        return DeltaEvictor.of(evict.number, difference, evict.after)
    return (CountEvictor if evict.kind == "count" else TimeEvictor)(evict.number, evict.after)


def describe(settings: Settings) -> WindowDescription:
    return WindowDescription(
        key_of,
        build_assigner(settings.assign),
        build_trigger(settings.fire),
        build_evictor(settings.evict),
        settings.lateness,
        LATE if settings.late_tag else None,
        join if settings.contents == "reduce" else None,
        Texts() if settings.contents == "aggregate" else None,
        Contents() if settings.contents == "list" else None,
    )


# --- random settings ------------------------------------------------

# Round numbers often, so that windows, sessions and watermarks meet exactly.
sizes = st.sampled_from([5, 10]) | st.integers(1, 15)
watermarks = st.sampled_from([4, 9, 14, 19]) | st.integers(-20, 60)
timestamps = st.sampled_from([0, 4, 5, 9, 10]) | st.integers(0, 20) | st.integers(-20, 60)


@st.composite
def assigns(draw, kinds=("tumbling", "sliding", "session", "dynamic", "count", "count-sliding", "global")):
    kind = draw(st.sampled_from(kinds))
    event = draw(st.booleans()) and kind not in ("count", "count-sliding", "global")
    size, slide = draw(sizes), draw(sizes)
    period = {"tumbling": size, "sliding": slide}.get(kind, 1)
    return Assign(kind, event, size, slide, draw(st.integers(1 - period, period - 1)))


@st.composite
def fires(draw, assign: Assign):
    merging = ["event", "processing", "count", "continuous-event", "continuous-processing"]
    kind = draw(st.sampled_from(merging if assign.kind in SESSIONS else [*merging, "delta", "never", "end"]))
    timeout = 0 if assign.kind in SESSIONS else draw(st.sampled_from([0, 0, 0, 3, 10]))
    purging = draw(st.booleans())
    return Fire(kind, draw(st.integers(1, 6)), purging, timeout, draw(st.booleans()), draw(st.booleans()))


def evicts():
    kinds = st.sampled_from(["count", "time", "delta"])
    return st.none() | st.builds(Evict, kinds, st.integers(1, 5), st.booleans())


@st.composite
def any_settings(draw):
    assign = draw(assigns())
    contents = draw(st.sampled_from(["list", "reduce", "aggregate"]))
    lateness = draw(st.sampled_from([0, 0, 1, 7, 20]))
    return Settings(assign, draw(fires(assign)), draw(evicts()), lateness, draw(st.booleans()), contents)


@st.composite
def default_settings(draw, kinds=("tumbling", "sliding", "session", "dynamic", "count")):
    """Settings as most jobs have them: the assigner's own trigger and no evictor."""
    assign = draw(assigns(kinds))
    kind = "event" if assign.event else "processing"
    contents = draw(st.sampled_from(["list", "reduce", "aggregate"]))
    lateness = draw(st.sampled_from([0, 0, 1, 7, 20]))
    fire = Fire("count", assign.size, True) if assign.kind == "count" else Fire(kind)
    return Settings(assign, fire, None, lateness, draw(st.booleans()), contents)


# --- random streams: what several channels send, as one sequence of steps ---

channels = st.integers(0, 2)
events = st.one_of(
    st.tuples(st.just("element"), channels, st.sampled_from("aab"), st.integers(0, 6), timestamps),
    st.tuples(st.just("element"), channels, st.just("a"), st.integers(0, 6), timestamps),
    st.tuples(st.just("watermark"), channels, watermarks),
    st.tuples(st.just("idle"), channels, st.booleans()),
    st.tuples(st.just("clock"), st.integers(1, 12)),
)


@st.composite
def streams(draw):
    """Steps as the operator sees them: ("batch", [(element, timestamp)]), ("watermark", w), ("clock", now)."""
    count = draw(st.sampled_from([1, 1, 2, 3]))
    valve, now = StatusWatermarkValve(count), 0
    steps: list = []
    for number, event in enumerate(draw(st.lists(events, max_size=40))):
        if event[0] == "clock":
            now += event[1]
            steps.append(("clock", now))
            continue
        channel = event[1] % count
        if event[0] == "element":
            _, _, key, size, timestamp = event
            if not steps or steps[-1][0] != "batch":
                steps.append(("batch", []))
            steps[-1][1].append(((key, size, chr(33 + number)), timestamp))
            continue
        if event[0] == "watermark":
            marks = valve.on_watermark(channel, event[2])
        else:
            marks = valve.on_status(channel, event[2])
        steps.extend(("watermark", mark.timestamp) for mark in marks if isinstance(mark, Watermark))
    return steps


def finish(steps):
    """The steps, and then the end of all input and of all time."""
    last_clock = max([step[1] for step in steps if step[0] == "clock"], default=0)
    return [*steps, ("watermark", END), ("clock", last_clock + 200)]
