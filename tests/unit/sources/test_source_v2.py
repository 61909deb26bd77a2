"""A Source with an enumerator and a reader of its own."""

from __future__ import annotations

from dataclasses import replace

import job_parts
import pytest
from job_parts import Numbers
from source_job import SourceJob

from penstock.common import Configuration
from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.exceptions import JobExecutionError, UserFunctionError
from penstock.common.time import Duration
from penstock.common.watermark_generator import WatermarkGenerator
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.source_v2 import Boundedness, InputStatus, Source

ODD = OutputTag("odd")


class NumbersEnumerator(job_parts.NumbersEnumerator):
    """Welcomes readers, and remembers what it is told."""

    def __init__(self, context, splits):
        super().__init__(context, splits)
        self.told = []
        self.completed = []

    def add_reader(self, subtask_id):
        self.context.send_event_to_source_reader(subtask_id, f"welcome {subtask_id}")

    def handle_source_event(self, subtask_id, source_event):
        self.told.append((subtask_id, source_event))

    def notify_checkpoint_complete(self, checkpoint_id):
        self.completed.append(checkpoint_id)


class NumbersReader(job_parts.NumbersReader):
    """Has an output for each split, and one for odd numbers; says thanks for events."""

    def __init__(self, context):
        super().__init__(context)
        self.heard = []
        self.is_closed = False

    def poll_next(self, output):
        if not self.splits:
            return InputStatus.END_OF_INPUT if self.has_all else InputStatus.NOTHING_AVAILABLE
        split = self.splits[0]
        if split.next == split.end:
            output.release_output_for_split(split.name)
            self.splits.pop(0)
            self.context.send_split_request()
        else:
            output.create_output_for_split(split.name).collect((split.name, split.next), split.next)
            if split.next % 2:
                output.output(ODD, split.next)
            self.splits[0] = replace(split, next=split.next + 1)
        return InputStatus.MORE_AVAILABLE

    def handle_source_events(self, source_event):
        self.heard.append(source_event)
        self.context.send_source_event_to_coordinator(f"thanks for '{source_event}'")

    def close(self):
        self.is_closed = True


class NumbersSource(Source):
    enumerator_class = NumbersEnumerator
    reader_class = NumbersReader

    def __init__(self, *splits):
        super().__init__()
        self.splits = splits

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, context):
        return self.enumerator_class(context, self.splits)

    def restore_enumerator(self, context, checkpoint):
        return self.enumerator_class(context, checkpoint)

    def create_reader(self, context):
        return self.reader_class(context)


A_AND_B = Numbers("a", 0, 3), Numbers("b", 10, 12)
ALL = [("a", 0), ("a", 1), ("a", 2), ("b", 10), ("b", 11)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_all_splits_are_read_by_those_who_ask(parallelism):
    job = SourceJob(NumbersSource(*A_AND_B), parallelism).to_the_end()
    assert sorted(job.values) == ALL


@pytest.mark.parametrize("failing", range(1, 9))
def test_failure_after_any_number_of_epochs(failing):
    job = SourceJob(NumbersSource(*A_AND_B), 2, settings={"penstock.epoch.max-records": "1"})
    for _ in range(failing - 1):
        job.epoch()
    job.epoch(is_checkpoint=False).fail().to_the_end()
    assert sorted(job.values) == ALL


def test_splits_on_their_way_to_a_reader_are_not_lost_with_the_process():
    job = SourceJob(NumbersSource(*A_AND_B), 2)
    job.epoch()  # Both have asked, and both splits are on their way.
    assert job.coordinator.enumerator.splits == []
    assert sorted(job.crash(1).to_the_end().values) == ALL


def test_enumerator_and_readers_exchange_events():
    job = SourceJob(NumbersSource(*A_AND_B), 2)
    job.epoch()
    assert [subtask.operator.reader.heard for subtask in job.subtasks] == [["welcome 0"], ["welcome 1"]]
    assert job.coordinator.enumerator.told == [(0, "thanks for 'welcome 0'"), (1, "thanks for 'welcome 1'")]
    job.close()


def test_enumerator_hears_of_complete_checkpoints():
    job = SourceJob(NumbersSource(*A_AND_B))
    job.epoch().epoch(is_checkpoint=False).epoch()
    assert job.coordinator.enumerator.completed == [1, 3]
    job.close()


def test_source_can_have_side_outputs():
    job = SourceJob(NumbersSource(*A_AND_B)).to_the_end()
    assert sorted(value for value, _ in job.subtasks[0].output.side["odd"]) == [1, 11]


def test_readers_are_closed():
    job = SourceJob(NumbersSource(*A_AND_B))
    reader = job.subtasks[0].operator.reader
    job.epoch().fail()
    assert reader.is_closed
    job.close()


# --- watermarks ------------------------------------------------------------------------------------------------------

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def test_watermark_is_the_smallest_of_all_splits():
    splits = Numbers("a", 0, 4), Numbers("b", 1000, 1004)
    job = SourceJob(NumbersSource(*splits), strategy=MONOTONOUS, settings={"penstock.epoch.max-records": "1"})
    job.subtasks[0].operator.reader.context.send_split_request()  # So that it has both.
    job.epoch().epoch().epoch()
    assert (job.values, job.watermarks[0]) == ([("a", 0), ("a", 1)], [])  # `b` may still have anything.
    job.to_the_end()
    assert job.watermarks[0] == [2, 999, 1000, 1001, 1002, MAX_LONG_VALUE]


def test_what_a_split_said_counts_although_it_ended_in_the_same_epoch():
    job = SourceJob(NumbersSource(Numbers("a", 0, 4)), strategy=MONOTONOUS)
    job.epoch().epoch()
    assert job.watermarks[0] == [2]
    job.close()


def test_idle_split_does_not_hold_back_the_others():
    idle = MONOTONOUS.with_idleness(Duration.of_millis(10))
    splits = Numbers("b", 1000, 1001), Numbers("a", 0, 50)
    job = SourceJob(NumbersSource(*splits), strategy=idle, settings={"penstock.epoch.max-records": "1"})
    job.subtasks[0].operator.reader.context.send_split_request()
    for _ in range(9):
        job.epoch()
        job.now_ms += 300
    assert job.watermarks[0][-1] == job.values[-1][1] - 1
    job.close()


def test_subtask_without_splits_is_idle_after_the_timeout():
    job = SourceJob(NumbersSource(), strategy=MONOTONOUS.with_idleness(Duration.of_millis(10)))
    for _ in range(3):
        job.now_ms += 300
        job.subtasks[0].operator.advance_processing_time(job.now_ms)
    assert job.subtasks[0].output.statuses == [True]
    job.close()


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event_timestamp % 2:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


def test_watermark_follows_right_behind_the_record_that_brought_it():
    strategy = WatermarkStrategy.for_generator(Punctuated)
    job = SourceJob(NumbersSource(Numbers("a", 0, 4)), strategy=strategy).to_the_end()
    assert job.subtasks[0].output.events == [
        ("element", ("a", 0), 0),
        ("element", ("a", 1), 1),
        ("watermark", None, 1),
        ("element", ("a", 2), 2),
        ("element", ("a", 3), 3),
        ("watermark", None, 3),
        ("watermark", None, MAX_LONG_VALUE),
    ]


def test_timestamps_of_the_reader_are_kept_unless_the_strategy_has_its_own():
    kept = SourceJob(NumbersSource(Numbers("a", 5, 8)), strategy=MONOTONOUS).to_the_end()
    assert kept.shown == [(("a", 5), 5), (("a", 6), 6), (("a", 7), 7)]
    doubled = MONOTONOUS.with_timestamp_assigner(lambda value, timestamp: 2 * timestamp)
    assert [at for _, at in SourceJob(NumbersSource(Numbers("a", 5, 8)), strategy=doubled).to_the_end().shown] == [
        10,
        12,
        14,
    ]


def test_watermarks_continue_after_a_failure_in_the_process():
    few = {"penstock.epoch.max-records": "2"}
    job = SourceJob(NumbersSource(Numbers("a", 0, 9)), strategy=MONOTONOUS, settings=few)
    job.epoch().epoch()
    assert job.watermarks[0] == [0]
    job.epoch(is_checkpoint=False).fail()
    job.subtasks[0].operator.end_epoch()
    assert job.watermarks[0] == []  # It was said before.
    job.epoch()
    assert job.watermarks[0] == [2]
    job.close()


# --- misuse ----------------------------------------------------------------------------------------------------------


class AssignsTooLate(NumbersEnumerator):
    def handle_split_request(self, subtask_id, requester_hostname):
        self.context.signal_no_more_splits(subtask_id)
        self.context.assign_split(self.splits.pop(), subtask_id)


class AssignsToNobody(NumbersEnumerator):
    def handle_split_request(self, subtask_id, requester_hostname):
        self.context.assign_split(self.splits.pop(), 7)


@pytest.mark.parametrize(
    ("enumerator", "message"),
    [
        (AssignsTooLate, "splits were assigned to reader 0 after signal_no_more_splits"),
        (AssignsToNobody, "there is no reader 7; there are 1, numbered from 0"),
    ],
)
def test_enumerator_that_breaks_the_rules_is_reported_which(enumerator, message):
    source = NumbersSource(*A_AND_B)
    source.enumerator_class = enumerator
    job = SourceJob(source)
    with pytest.raises(UserFunctionError, match=message):
        job.epoch()
    job.close()


class FailsAsynchronously(NumbersEnumerator):
    def start(self):
        self.context.call_async(lambda: 1 // 0, self.done)

    def handle_split_request(self, subtask_id, requester_hostname):
        """Waits for the call."""

    def done(self, result, error):
        raise error


def test_failure_of_an_asynchronous_call_reaches_the_job():
    source = NumbersSource(*A_AND_B)
    source.enumerator_class = FailsAsynchronously
    job = SourceJob(source)
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        job.to_the_end()
    job.close()


class EndingOnceReader(job_parts.NumbersReader):
    """Says only once that it has ended, with its last record: polled again, it would begin from the start."""

    def __init__(self, context):
        super().__init__(context)
        self.next = 0

    def poll_next(self, output):
        output.collect(self.next)
        self.next = (self.next + 1) % 3
        return InputStatus.MORE_AVAILABLE if self.next else InputStatus.END_OF_INPUT


class EndingOnce(Source):
    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, context):
        return job_parts.NumbersEnumerator(context, [])

    def restore_enumerator(self, context, checkpoint):
        return job_parts.NumbersEnumerator(context, checkpoint)

    def create_reader(self, context):
        return EndingOnceReader(context)


def test_a_reader_that_has_ended_is_not_polled_again():
    config = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    stream = env.from_source(EndingOnce(), WatermarkStrategy.no_watermarks(), "numbers")
    assert list(stream.execute_and_collect()) == [0, 1, 2]
