"""A subtask that has nothing to do in an epoch is not run. That must change nothing but the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.time import Duration
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state_descriptors import ValueStateDescriptor
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.worker import Worker
from penstock.testing.memory_folder import MemoryFolder

STEP_MS = 1_000_000
"""Between two epochs, by the driver's clock: a subtask that runs for seconds sees no other timers due."""


class Number(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class CountsWithTimers(KeyedProcessFunction):
    """Counts per key; says so now, later by the clock, and later in event time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        now_ms = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now_ms // STEP_MS * STEP_MS + STEP_MS * 3 // 2)
        ctx.timer_service().register_event_time_timer(int(value) + 5)
        yield "element", ctx.get_current_key(), self.count.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield str(ctx.time_domain()), timestamp, ctx.get_current_key(), self.count.value()


def graph_of(parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2)).with_timestamp_assigner(Number())
    numbers = env.socket_text_stream("nowhere", 1).assign_timestamps_and_watermarks(strategy)
    counts = numbers.rebalance().map(lambda text: text).key_by(lambda text: int(text) % 5).process(CountsWithTimers())
    counts._sink("collected", CollectSinkDescription("collected"))
    return build_job_graph(env.get_stream_graph())


def run(graph: JobGraph, epochs: list[list[int]], is_report: bool) -> tuple[list[dict[int, list[Any]]], int]:
    """What each subtask of the sink got in each epoch, and how many subtasks were run in all of them."""
    worker = Worker(JobDeployment("0" * 32, graph), MemoryFolder())
    results, were_run = [], 0
    for number, records in enumerate(epochs, start=1):
        is_last = number == len(epochs)
        command = EpochCommand(
            number, number * STEP_MS, previous_epoch=number - 1, is_report=is_report, is_last=is_last
        )
        assignment = SourceAssignment([str(each) for each in records], is_last)
        rows = [Row(0, 0, FROM_DRIVER, 0, 0, assignment.encode())] if records or is_last else []
        answers = list(worker.run_epoch(command, rows))
        assert not [row for row in answers if row.vertex == FAILURE]
        acks = [TaskAck.decode(row.chunk) for row in answers if row.vertex == ACKNOWLEDGEMENT]
        collected = {ack.subtask: values for ack in acks for values in ack.outcome.collected.values() if values}
        results.append(collected)
        were_run += len(acks)
    return results, were_run


@settings(max_examples=50)
@given(st.integers(1, 3), st.lists(st.lists(st.integers(0, 60), max_size=3), min_size=1, max_size=8))
def test_sleeping_changes_nothing(parallelism, epochs):
    graph = graph_of(parallelism)
    epochs = [[], *epochs, [], []]
    assert run(graph, epochs, is_report=False)[0] == run(graph, epochs, is_report=True)[0]


def test_subtasks_without_rows_and_timers_are_not_run():
    graph = graph_of(3)
    everybody = sum(vertex.parallelism for vertex in graph.vertices)
    quiet = [[], [], [], [], [1], []]
    results, were_run = run(graph, quiet, is_report=False)
    assert results[4] != {} and results[5] != {}
    # All in the first epoch and in the last; between them the source, who assigns the watermark, the three who get it,
    # and the count.
    assert were_run == everybody + (1 + 1 + 3 + 1) + everybody
    assert run(graph, quiet, is_report=True)[1] == everybody * len(quiet)


def test_timer_of_the_clock_wakes_its_subtask_up():
    (_, *later, _), _ = run(graph_of(2), [[], [1], [], [], [], []], is_report=False)
    fired = [[value for values in each.values() for value in values if "PROCESSING" in value[0]] for each in later]
    assert [len(each) for each in fired] == [0, 0, 1, 0]
