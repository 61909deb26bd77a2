"""One window program for PyFlink and for Penstock: only the root of the imports differs.

A case is plain data (see `window_cases.json`): windows, trigger, lateness, contents, and a list of
[key, number, text, timestamp, watermark after it]. Elements are (key, number, text) tuples.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any


def load(root: str) -> SimpleNamespace:
    """The modules of `pyflink` or `penstock`."""
    names = ("common", "datastream", "datastream.window", "datastream.functions")
    common, datastream, window, functions = (import_module(f"{root}.{name}") for name in names)
    return SimpleNamespace(common=common, datastream=datastream, window=window, functions=functions)


def windowed(stream: Any, case: dict[str, Any], api: SimpleNamespace) -> Any:
    """`stream` of elements, windowed as the case says."""
    if case.get("all"):
        windows = stream.window_all(_assigner(case["assigner"], api))
    else:
        windows = stream.key_by(lambda element: element[0]).window(_assigner(case["assigner"], api))
    if "trigger" in case:
        windows = windows.trigger(_trigger(case["trigger"], api))
    if "evictor" in case:
        windows = windows.evictor(_evictor(case["evictor"], api))
    if "lateness" in case:
        windows = windows.allowed_lateness(case["lateness"])
    if case.get("late_tag"):
        windows = windows.side_output_late_data(late_tag(api))
    return _evaluated(windows, case, _functions(api))


def late_tag(api: SimpleNamespace) -> Any:
    return api.datastream.OutputTag("late", api.common.Types.PICKLED_BYTE_ARRAY())


def _assigner(spec: list[Any], api: SimpleNamespace) -> Any:
    kind, *numbers = spec
    w, time = api.window, api.common.Time.milliseconds
    if kind == "dynamic":
        return w.EventTimeSessionWindows.with_dynamic_gap(_gap_extractor(api))
    if kind == "session":
        return w.EventTimeSessionWindows.with_gap(time(*numbers))
    if kind == "count":
        return w.CountTumblingWindowAssigner.of(*numbers)
    if kind == "count-sliding":
        return w.CountSlidingWindowAssigner.of(*numbers)
    if kind == "global":
        return w.GlobalWindows.create()
    kinds = {"tumbling": w.TumblingEventTimeWindows, "sliding": w.SlidingEventTimeWindows}
    return kinds[kind].of(*map(time, numbers))


def _trigger(spec: list[Any], api: SimpleNamespace) -> Any:
    kind, *rest = spec
    w = api.window
    if kind == "purging":
        return w.PurgingTrigger.of(_trigger(rest[0], api))
    if kind == "count":
        return w.CountTrigger.of(*rest)
    if kind == "continuous":
        return w.ContinuousEventTimeTrigger.of(api.common.Time.milliseconds(*rest))
    if kind == "delta":
        return w.DeltaTrigger.of(rest[0], _difference)
    return w.EventTimeTrigger.create()


def _evictor(spec: list[Any], api: SimpleNamespace) -> Any:
    """Evictors and delta triggers exist in Flink and in Penstock, not in PyFlink."""
    kind, number, do_evict_after = spec
    w = api.window
    if kind == "count":
        return w.CountEvictor.of(number, do_evict_after)
    if kind == "time":
        return w.TimeEvictor.of(api.common.Time.milliseconds(number), do_evict_after)
    return w.DeltaEvictor.of(number, _difference, do_evict_after)


def _difference(old: Any, new: Any) -> Any:
    return new[1] - old[1]


def _gap_extractor(api: SimpleNamespace) -> Any:
    class NumberAsGap(api.window.SessionWindowTimeGapExtractor):
        def extract(self, element):
            return element[1]

    return NumberAsGap()


def _evaluated(windows: Any, case: dict[str, Any], functions: SimpleNamespace) -> Any:
    kind, _, function = case["contents"].partition("+")
    window_functions = {
        "apply": functions.Apply,
        "process": functions.Process,
        "apply-all": functions.ApplyAll,
        "process-all": functions.ProcessAll,
        "stateful": functions.Stateful,
    }
    if kind == "reduce":
        return windows.reduce(_join, window_functions[function]() if function else None)
    if kind == "aggregate":
        return windows.aggregate(functions.Texts(), window_functions[function]() if function else None)
    evaluate = windows.apply if kind.startswith("apply") else windows.process
    return evaluate(window_functions[kind]())


def _join(left: Any, right: Any) -> Any:
    return left[0], left[1] + right[1], left[2] + right[2]


def _functions(api: SimpleNamespace) -> SimpleNamespace:
    """The user's functions, on the base classes of either library."""
    f = api.functions
    state = import_module(f"{f.__name__.partition('.')[0]}.datastream.state")

    def show(window: Any, elements: Any) -> list[Any]:
        span = [window.start, window.end] if hasattr(window, "start") else [getattr(window, "id", None), None]
        return [*span, [list(e) if isinstance(e, tuple) else e for e in elements]]

    class Texts(f.AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            return [*accumulator, value[2]]

        def get_result(self, accumulator):
            return "-".join(accumulator)

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    class Apply(f.WindowFunction):
        def apply(self, key, window, inputs):
            return [[key, *show(window, inputs)]]

    class Process(f.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield [key, *show(context.window(), elements)]

    class ApplyAll(f.AllWindowFunction):
        def apply(self, window, inputs):
            return [show(window, inputs)]

    class ProcessAll(f.ProcessAllWindowFunction):
        def process(self, context, elements):
            yield show(context.window(), elements)

    class Stateful(f.ProcessWindowFunction):
        """Counts the firings of each window and of each key."""

        def process(self, key, context, elements):
            counts = []
            for store, name in ((context.window_state(), "of-window"), (context.global_state(), "of-key")):
                count = store.get_state(state.ValueStateDescriptor(name, api.common.Types.LONG()))
                count.update((count.value() or 0) + 1)
                counts.append(count.value())
            yield [key, *show(context.window(), elements), counts, context.current_watermark()]

        def clear(self, context):
            descriptor = state.ValueStateDescriptor("of-window", api.common.Types.LONG())
            context.window_state().get_state(descriptor).clear()

    return SimpleNamespace(
        Texts=Texts, Apply=Apply, Process=Process, ApplyAll=ApplyAll, ProcessAll=ProcessAll, Stateful=Stateful
    )
