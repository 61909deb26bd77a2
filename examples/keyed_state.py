"""State for each key: say how a price moved, and list the days on which it was at its highest so far."""

from __future__ import annotations

from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor

PRICES = [("oil", 1, 70), ("gas", 1, 30), ("oil", 2, 75), ("gas", 2, 28), ("oil", 3, 72), ("oil", 4, 80)]


class Follow(KeyedProcessFunction):
    def open(self, runtime_context):
        self._last = runtime_context.get_state(ValueStateDescriptor("last price"))
        self._highs = runtime_context.get_list_state(ListStateDescriptor("days of highs"))
        self._highest = runtime_context.get_state(ValueStateDescriptor("highest price"))

    def process_element(self, value, ctx):
        name, day, price = value
        change = price - (self._last.value() or price)
        self._last.update(price)
        if price > (self._highest.value() or 0):
            self._highest.update(price)
            self._highs.add(day)
        yield f"{name} on day {day}: {price} ({change:+d}), highs on days {list(self._highs.get())}"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.from_collection(PRICES).key_by(lambda price: price[0]).process(Follow()).print()
env.execute("keyed state")
