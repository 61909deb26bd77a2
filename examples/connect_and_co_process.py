"""Two streams of different types in one operator that shares state between them: match orders with payments."""

from __future__ import annotations

from penstock.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

ORDERS = [("o1", "book"), ("o2", "lamp"), ("o3", "desk")]
PAYMENTS = [("o2", 40), ("o1", 12)]


class Match(KeyedCoProcessFunction):
    """Which of the two comes first does not matter: it waits for the other in state."""

    def open(self, runtime_context):
        self._order = runtime_context.get_state(ValueStateDescriptor("order"))
        self._payment = runtime_context.get_state(ValueStateDescriptor("payment"))

    def process_element1(self, value, ctx):
        self._order.update(value[1])
        yield from self._matched(ctx)

    def process_element2(self, value, ctx):
        self._payment.update(value[1])
        yield from self._matched(ctx)

    def _matched(self, ctx):
        if self._order.value() is not None and self._payment.value() is not None:
            yield f"{ctx.get_current_key()}: {self._order.value()} paid with {self._payment.value()}"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
orders, payments = env.from_collection(ORDERS), env.from_collection(PAYMENTS)
orders.connect(payments).key_by(lambda o: o[0], lambda p: p[0]).process(Match()).print()
env.execute("connected streams")
