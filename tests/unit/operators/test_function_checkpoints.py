"""Functions that take part in checkpoints, in any operator."""

from __future__ import annotations

import pytest

from penstock.common.exceptions import StateAccessError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessFunction,
    SinkFunction,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.graph.descriptions import MapDescription, SinkFunctionDescription
from penstock.runtime.batch import Batch
from penstock.runtime.chain_compiler import FusedOperator
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.testing import OperatorHarness
from penstock.testing.harness import RecordingOutput


class Total(MapFunction, CheckpointedFunction):
    """The running total, which is operator state."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("total", Types.INT()))
        self.total = sum(self.state.get())
        self.how = ["initialized", context.is_restored(), context.get_restored_checkpoint_id()]

    def open(self, runtime_context):
        self.how.append("opened")

    def snapshot_state(self, context):
        self.state.update([self.total])
        self.how.append(("snapshot", context.get_checkpoint_id(), context.get_checkpoint_timestamp()))

    def map(self, value):
        self.total += value
        return self.total


class Recent(ProcessFunction, ListCheckpointed):
    """All values so far, in a list."""

    def __init__(self):
        self.values = []
        self.is_restored = False

    def process_element(self, value, ctx):
        self.values.append(value)
        yield tuple(self.values)

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.values

    def restore_state(self, state):
        self.values = state
        self.is_restored = True


def total_harness(restored=None, **where):
    return OperatorHarness(MapDescription(Total()), restored, **where)


def function_of(h):
    return h.operator.user_function.function


def test_state_is_initialized_before_open():
    assert function_of(total_harness()).how == ["initialized", False, None, "opened"]


def test_checkpointed_function_continues_after_a_restore():
    before = total_harness(processing_time=50).element(1).element(2)
    snapshot = before.snapshot()
    assert function_of(before).how[-1] == ("snapshot", 1, 50)
    after = total_harness(snapshot).element(4)
    assert after.output == [7]
    assert function_of(after).how == ["initialized", True, 1, "opened"]


def test_what_came_after_the_snapshot_is_forgotten():
    before = total_harness().element(1)
    snapshot = before.snapshot()
    before.element(100)
    assert total_harness(snapshot).element(1).output == [2]


def test_list_checkpointed_function_continues_after_a_restore():
    before = OperatorHarness.of(lambda stream: stream.process(Recent())).element(1).element(2)
    assert function_of(before).is_restored is False
    after = OperatorHarness.of(lambda stream: stream.process(Recent()), before.snapshot()).element(3)
    assert after.output == [(1, 2, 3)]


def test_restored_list_may_be_empty():
    before = OperatorHarness.of(lambda stream: stream.process(Recent()))
    after = OperatorHarness.of(lambda stream: stream.process(Recent()), before.snapshot())
    assert function_of(after).is_restored is True


def test_snapshot_after_close_keeps_what_was_saved_last():
    before = total_harness().element(5)
    before.snapshot()
    before.close()
    assert total_harness(before.snapshot()).element(1).output == [6]


def test_listener_is_notified_of_completed_checkpoints():
    class Listens(SinkFunction, CheckpointListener):
        def __init__(self):
            self.completed = []

        def invoke(self, value, context):
            """Nothing to do."""

        def notify_checkpoint_complete(self, checkpoint_id):
            self.completed.append(checkpoint_id)

    h = OperatorHarness(SinkFunctionDescription(Listens()))
    h.operator.notify_checkpoint_complete(3)
    assert function_of(h).completed == [3]


def test_keyed_state_can_be_had_at_initialization():
    class Counts(KeyedProcessFunction, CheckpointedFunction):
        def initialize_state(self, context):
            store = context.get_keyed_state_store()
            self.count = store.get_state(ValueStateDescriptor("count", Types.INT()))

        def snapshot_state(self, context):
            """Keyed state is saved by itself."""

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            yield value, self.count.value()

    def build(stream):
        return stream.key_by(lambda value: value).process(Counts())

    before = OperatorHarness.of(build).element("a")
    assert OperatorHarness.of(build, before.snapshot()).element("a").element("b").output == [("a", 2), ("b", 1)]


def test_keyed_state_at_initialization_needs_a_key():
    class Wants(Total):
        def initialize_state(self, context):
            context.get_keyed_state_store().get_state(ValueStateDescriptor("count", Types.INT()))

    with pytest.raises(StateAccessError, match=r"keyed state 'count' .* call key_by"):
        OperatorHarness(MapDescription(Wants()))


def fused(contexts):
    operator = FusedOperator([MapDescription(Total()), MapDescription(Total())], contexts)
    output = RecordingOutput()
    operator.setup(contexts[0], output)
    return operator, output


def test_functions_of_a_fused_chain_take_part_too():
    task = TaskInfo("0" * 32, "job", "task", 0, 1, 128)
    old = [OperatorContext(task, name, name, lambda: 0) for name in ("first", "second")]
    operator, _ = fused(old)
    operator.open()
    operator.process_batch(Batch([1, 2]))
    operator.snapshot_state(7)

    new = [OperatorContext(task, name, name, lambda: 0, restored_checkpoint_id=7) for name in ("first", "second")]
    operator, output = fused(new)
    for before, after in zip(old, new, strict=True):
        after.operator_state.restore(before.operator_state.snapshot())
    operator.open()
    operator.process_batch(Batch([1]))
    assert output.records == [(8, None)]  # 1 + 2 + 1 = 4, and before it 1 + 3 = 4.
