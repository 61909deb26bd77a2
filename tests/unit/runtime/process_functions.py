"""Process functions in many shapes, for the loops that do their work: most can stand in one, some must be called."""

from __future__ import annotations

import functools
import json
import math
from collections import defaultdict, deque

from penstock.datastream import KeyedProcessFunction, OutputTag
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

SIDE = OutputTag("side")
LIMIT = 3


def doubled(number):
    return 2 * number


class Base(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.by_number = runtime_context.get_map_state(MapStateDescriptor("by-number"))
        self.calls = 0


class Counts(Base):
    """With a docstring."""

    def process_element(self, value, ctx):
        """With one of its own."""
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value[1] % 2 == 0:
            yield value[0], count


class CallsModules(Base):
    def process_element(self, value, ctx):
        kept = json.loads(self.count.value() or "[]")
        kept.append(math.isqrt(value[1]))
        self.count.update(json.dumps(kept))
        yield value[0], sum(kept)


class CountsAndForgets(Base):
    def process_element(self, value, ctx):
        count = self.count.value()
        if count is None:
            self.count.update(1)
            return
        if count >= LIMIT:
            self.count.clear()
            yield f"{ctx.get_current_key()} reached {count}"
            return
        self.count.update(count + 1)


class UpdatesToNone(Base):
    def process_element(self, value, ctx):
        new = None if value[1] > 5 else value[1]
        self.count.update(new)
        yield value[0], self.count.value()


class Lists(Base):
    def process_element(self, value, ctx):
        self.seen.add(value[1])
        if value[1] == 4:
            self.seen.clear()
        yield ctx.timestamp(), value


class ListsThatAreRead(Base):
    def process_element(self, value, ctx):
        self.seen.add(value[1])
        yield value[0], list(self.seen.get())
        if sum(number for number in self.seen) > 9:
            self.seen.update([])


class Maps(Base):
    def process_element(self, value, ctx):
        before = self.by_number.get(value[1])
        self.by_number.put(value[1], (before or 0) + 1)
        if self.by_number.contains(value[1] + 1):
            yield value[0], before
        if value[1] == 0:
            self.by_number.clear()


class MapsOtherwise(Base):
    def process_element(self, value, ctx):
        self.by_number[value[1]] = value
        yield sorted(self.by_number.keys())
        if value[1] in self.by_number and value[1] > 3:
            self.by_number.remove(value[1])


class SideOutputs(Base):
    def process_element(self, value, ctx):
        yield value
        if value[1] > 2:
            yield SIDE, value[1]
        ctx.output(SIDE, f"also {value[0]}")


class MaybeTagged(Base):
    def process_element(self, value, ctx):
        first = SIDE if value[1] % 3 == 0 else value[0]
        yield first, value[1]
        pair = first, "pair"
        yield pair
        yield from [pair, value, None, 7]


class ReturnsLists(Base):
    def process_element(self, value, ctx):
        if value[1] == 1:
            return None
        if value[1] == 2:
            return [value, value]
        self.calls += 1
        return [(SIDE, self.calls), value[1]]


class ReturnsNothing(Base):
    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + value[1])


class Loops(Base):
    def process_element(self, value, ctx):
        total = 0
        for at in range(value[1]):
            if at == 2:
                continue
            if at > 4:
                break
            total += at
            yield at
        while total > 3:
            total -= doubled(2)
        squares = [number * total for number in range(3)]
        yield sum(square + value[1] for square in squares)


class SetsItsParameter(Base):
    def process_element(self, value, ctx):
        key, number = value
        value = number + 1
        value += 1
        yield key, value


class RemembersInLocals(Base):
    """Must be called: a variable may not have been set."""

    def process_element(self, value, ctx):
        if value[1] == 0:
            last = value
        try:
            yield last
        except UnboundLocalError:
            yield "unset"


class CallsItself(Base):
    """State is used by a method that the loop does not know."""

    def process_element(self, value, ctx):
        self.add(value[1])
        yield self.count.value()

    def add(self, number):
        self.count.update((self.count.value() or 0) + number)
        if self.count.value() > 6:
            self.count.clear()


class KeepsStatesInATable(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.states = {"count": self.count}

    def process_element(self, value, ctx):
        self.count.update(value[1])
        self.states["count"].update((self.count.value() or 0) + 1)
        yield self.count.value()


class TwoNamesForOneState(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.again = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update(value[1])
        self.again.update((self.again.value() or 0) + 1)
        yield self.count.value(), self.again.value()


class HandsItsStateOut(Base):
    def process_element(self, value, ctx):
        state = self.count
        state.update(value[1])
        yield self.count.value()


class DefaultValues(Base):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=5))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + value[1])
        yield self.count.value()


class ChangesItsStates(Base):
    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()
        if value[1] == 3:
            self.count = self.other

    def open(self, runtime_context):
        super().open(runtime_context)
        self.other = runtime_context.get_state(ValueStateDescriptor("other"))


class Timers(Base):
    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1] * 10)
        if value[1] == 5:
            ctx.timer_service().delete_event_time_timer(40)

    def on_timer(self, timestamp, ctx):
        count = self.count.value()
        self.count.clear()
        yield ctx.get_current_key(), timestamp, count
        if ctx.time_domain().name == "EVENT_TIME":
            yield SIDE, ctx.timestamp()


class TimersThatSetOthers(Base):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] * 10)

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timer_service().current_watermark()
        if timestamp < 30:
            ctx.timer_service().register_event_time_timer(timestamp + 5)


class TimersThatAreSet(Base):
    """Sets timers only, some twice, and looks at time: they can be set after the batch."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] * 10)
        if value[1] % 2 == 0:
            ctx.timer_service().register_event_time_timer(value[1] + 5)
            yield ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx):
        if timestamp % 10:
            return ()
        return [(ctx.get_current_key(), timestamp)]


class TimersThatAreDeleted(Base):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] * 10)
        if value[1] % 3 == 0:
            ctx.timer_service().delete_event_time_timer(value[1] * 10)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


class ProcessingTimers(Base):
    def process_element(self, value, ctx):
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def enclosed(number):
    class Adds(Base):
        def process_element(self, value, ctx):
            yield value[1] + number

    return Adds()


class HasStateInItsClass(KeyedProcessFunction):
    def open(self, runtime_context):
        HasStateInItsClass.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value[0], self.count.value()


class HandsItsAttributesOn(Base):
    """Its state is found by `__getattr__` only."""

    def open(self, runtime_context):
        self.states = {"counted": runtime_context.get_state(ValueStateDescriptor("counted"))}

    def __getattr__(self, name):
        if name == "states":
            raise AttributeError(name)
        return self.states[name]

    def process_element(self, value, ctx):
        self.counted.update((self.counted.value() or 0) + 1)
        yield value[0], self.counted.value()


class ReadsStateToFillADefault(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.counts = defaultdict(self.counted)

    def counted(self):
        self.count.update((self.count.value() or 0) + 1)
        return self.count.value()

    def process_element(self, value, ctx):
        yield value[0], self.counts[value]


class Adder:
    def __init__(self, count):
        self._count = count

    def add(self, number):
        self._count.update((self._count.value() or 0) + number)
        return self._count.value()


class HasStateInKeys(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.weights = {Adder(self.count): 2}

    def process_element(self, value, ctx):
        for adder, weight in self.weights.items():
            yield value[0], adder.add(weight)


count_of_all = None
states_of_all = {}


class HasStateInAGlobal(KeyedProcessFunction):
    def open(self, runtime_context):
        global count_of_all
        count_of_all = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count_of_all.update((count_of_all.value() or 0) + 1)
        yield value[0], count_of_all.value()


class HasStateInAHelper(Base):
    """The same state is there under two names, and one of them out of sight."""

    def open(self, runtime_context):
        super().open(runtime_context)
        states_of_all["count"] = self.count

    def process_element(self, value, ctx):
        self.count.update(value[1])
        yield value[0], Counting.counted(2), self.count.value()


class Counting:
    @staticmethod
    def counted(by):
        states_of_all["count"].update((states_of_all["count"].value() or 0) + by)
        if states_of_all["count"].value() % 2:
            states_of_all["count"].clear()
        return states_of_all["count"].value()


def with_enclosed_state():
    count = None

    class Counts(KeyedProcessFunction):
        def open(self, runtime_context):
            nonlocal count
            count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value, ctx):
            count.update((count.value() or 0) + 1)
            yield value[0], count.value()

    return Counts()


def has_a_variable_like_an_outer_one(number):
    class Adds(Base):
        def process_element(self, value, ctx):
            yield value[1] + number, [number for number in range(value[1])]

    return Adds()


# --- state and timers that the body does not show ---------------------------------------------------------------------


class FindsItsTimersLate(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.timers = None

    def process_element(self, value, ctx):
        if self.timers is None:
            self.timers = ctx.timer_service()
        self.timers.register_event_time_timer(value[1] * 10)
        self.count.update((self.count.value() or 0) + 1)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.count.value()


class MakesAHelperInATimer(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        self.adder = None

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])
        if self.adder is not None:
            yield value[0], self.adder.add(value[1])

    def on_timer(self, timestamp, ctx):
        self.adder = Adder(self.count)


class SetsTimersThroughAHelper(Base):
    """The helper is not there yet when the first watermark comes, and its timers are due at once."""

    def open(self, runtime_context):
        super().open(runtime_context)
        self.timers = []

    def process_element(self, value, ctx):
        self.timers = [ctx.timer_service()]
        self.timers[0].register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, [each.current_watermark() for each in self.timers]
        for each in self.timers:
            if timestamp % 4:
                each.register_event_time_timer(timestamp + 1)
                each.delete_event_time_timer(timestamp + 2)


class DeletesGatheredTimers(Base):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] * 10)
        self.forget(value[1], ctx.timer_service().current_watermark)
        yield value

    def forget(self, number, of_the_service):
        if number % 2:
            of_the_service.__self__.delete_event_time_timer(number * 10)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


class HasAPropertyThatWrites(Base):
    @property
    def total(self):
        return self.count.value() or 0

    @total.setter
    def total(self, number):
        self.count.update(number) if number % 5 else self.count.clear()

    def process_element(self, value, ctx):
        self.total += value[1]
        yield value


class Slotted:
    __slots__ = ("count",)

    def __init__(self, count):
        self.count = count

    def __add__(self, number):
        self.count.update((self.count.value() or 0) + number)
        return self.count.value()


holder = {}


class HasStateInManyPlaces(Base):
    def open(self, runtime_context):
        super().open(runtime_context)
        holder["slotted"] = Slotted(self.count)
        holder["partial"] = functools.partial(Adder(self.count).add, 3)
        json.penstock_test_adder = Adder(self.count)
        holder["queue"] = deque([Adder(self.count)])
        MANY.update({number: None for number in range(150)})
        MANY["last"] = self.count

    def process_element(self, value, ctx):
        match_of = value[1] % 5
        if match_of == 0:
            yield value[0], holder["slotted"] + 1
        elif match_of == 1:
            yield value[0], holder["partial"]()
        elif match_of == 2:
            yield value[0], holder["queue"][0].add(2)
        elif match_of == 3:
            yield value[0], json.penstock_test_adder.add(4)
        else:
            MANY["last"].clear()
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


MANY = {}


class SwapsItsStates(Base):
    """A method makes the attribute hold another state, in the middle of a batch."""

    def open(self, runtime_context):
        super().open(runtime_context)
        self.other = runtime_context.get_state(ValueStateDescriptor("other"))

    def swap(self, number):
        self.count, self.other = self.other, self.count
        return number

    def process_element(self, value, ctx):
        self.count.update(self.swap(value[1]))
        self.other.update((self.other.value() or 0) + 1)
        yield value[0], self.count.value(), self.other.value()


class WritesInArguments(Base):
    def noted(self, number):
        self.by_number.put(number, number)
        self.seen.add(number)
        return number

    def process_element(self, value, ctx):
        yield self.by_number.get(self.noted(value[1])), self.by_number.contains(self.noted(value[1] + 1))
        self.by_number.put(self.noted(1), value[1])
        self.seen.add(self.noted(value[1]))
        if value[1] > 5:
            self.forget()
        yield [self.by_number.get(number) for number in range(3) if self.by_number.contains(number)]

    def forget(self):
        self.by_number.clear()
        self.seen.clear()


IN_A_LOOP = [
    Counts(), CallsModules(), CountsAndForgets(), UpdatesToNone(), Lists(), ListsThatAreRead(), Maps(),
    MapsOtherwise(), SideOutputs(),
    MaybeTagged(), ReturnsLists(), ReturnsNothing(), Loops(), SetsItsParameter(), CallsItself(), KeepsStatesInATable(),
    TwoNamesForOneState(), HandsItsStateOut(), DefaultValues(), ChangesItsStates(), Timers(), TimersThatSetOthers(),
    TimersThatAreSet(), TimersThatAreDeleted(),
    ProcessingTimers(), enclosed(3), HasStateInItsClass(), HandsItsAttributesOn(), ReadsStateToFillADefault(),
    HasStateInKeys(), HasStateInAGlobal(), HasStateInAHelper(), with_enclosed_state(), FindsItsTimersLate(),
    MakesAHelperInATimer(), SetsTimersThroughAHelper(), DeletesGatheredTimers(), HasAPropertyThatWrites(),
    HasStateInManyPlaces(), SwapsItsStates(), WritesInArguments(),
]  # fmt: skip
CALLED = [RemembersInLocals(), has_a_variable_like_an_outer_one(3)]
