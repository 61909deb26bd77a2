"""Every metric that Penstock reports: one list, from which docs/metrics.md is made.

Names and scopes are Flink's. Functions add their own at the scope of their operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """What a metric is about, in Flink's words; also a part of its name in Prometheus."""

    PROCESS = "jobmanager"
    JOB = "jobmanager_job"
    LATENCY = "taskmanager_job"
    TASK = "taskmanager_job_task"
    OPERATOR = "taskmanager_job_task_operator"

    @property
    def variables(self) -> tuple[str, ...]:
        """What distinguishes metrics of one name."""
        return _VARIABLES[self]


_OF_JOB = ("host", "job_id", "job_name")
_OF_TASK = (*_OF_JOB, "tm_id", "task_id", "task_name", "subtask_index", "task_attempt_num")
_VARIABLES = {
    Scope.PROCESS: ("host",),
    Scope.JOB: _OF_JOB,
    Scope.LATENCY: (*_OF_JOB, "source_id", "source_subtask_index", "operator_id", "operator_subtask_index"),
    Scope.TASK: _OF_TASK,
    Scope.OPERATOR: (*_OF_TASK, "operator_id", "operator_name"),
}


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    METER = "meter"
    HISTOGRAM = "histogram"
    TEXT = "text"
    """A gauge that is no number; reporters that take numbers alone leave it out."""


@dataclass(frozen=True)
class MetricDefinition:
    scope: Scope
    name: str
    kind: Kind
    meaning: str
    condition: str = ""
    """When it is reported; empty for always."""


def _of(scope: Scope, *rows: tuple[str, Kind, str] | tuple[str, Kind, str, str]) -> Iterable[MetricDefinition]:
    return (MetricDefinition(scope, *row) for row in rows)


_IF_CHECKPOINT = "after the first checkpoint"
_IF_RESTORED = "if the job began from a checkpoint or savepoint"
_IF_EPOCH = "after the first epoch"
_IF_HOSTS = "where Spark's executors are known"
_IF_COMMITS = "sinks that commit with checkpoints"
_IF_SKIPS = "sources and operators that skip such"
_IF_KAFKA = "Kafka source"
_IF_TWO_INPUTS = "operators with two inputs"

CATALOGUE: tuple[MetricDefinition, ...] = (
    *_of(
        Scope.PROCESS,
        ("numRunningJobs", Kind.GAUGE, "jobs that have not ended"),
        ("numRegisteredTaskManagers", Kind.GAUGE, "executors", _IF_HOSTS),
        ("taskSlotsTotal", Kind.GAUGE, "slots of all executors", _IF_HOSTS),
        ("taskSlotsAvailable", Kind.GAUGE, "slots that are free", _IF_HOSTS),
        ("Status.JVM.CPU.Time", Kind.GAUGE, "CPU time of the Python process that runs the jobs (ns)"),
        ("Status.JVM.Threads.Count", Kind.GAUGE, "its threads"),
        ("Status.JVM.Memory.Heap.Used", Kind.GAUGE, "the memory that it holds (bytes, resident set)", "on Linux"),
    ),
    *_of(
        Scope.JOB,
        ("uptime", Kind.GAUGE, "time in RUNNING without a break (ms); 0 before and between, -1 after the end"),
        ("downtime", Kind.GAUGE, "time since a failure, while the job restarts (ms); 0 if it runs"),
        ("runningTime", Kind.GAUGE, "time in RUNNING, if that is the status (ms)"),
        ("restartingTime", Kind.GAUGE, "time in RESTARTING, if that is the status (ms)"),
        ("numRestarts", Kind.GAUGE, "restarts since the job was submitted"),
        ("totalNumberOfCheckpoints", Kind.GAUGE, "checkpoints that were begun"),
        ("numberOfInProgressCheckpoints", Kind.GAUGE, "checkpoints under way"),
        ("numberOfCompletedCheckpoints", Kind.GAUGE, "checkpoints that are complete"),
        ("numberOfFailedCheckpoints", Kind.GAUGE, "checkpoints that failed"),
        ("lastCompletedCheckpointId", Kind.GAUGE, "number of the last complete checkpoint", _IF_CHECKPOINT),
        ("lastCheckpointDuration", Kind.GAUGE, "how long it took (ms)", _IF_CHECKPOINT),
        ("lastCheckpointSize", Kind.GAUGE, "what it has written (bytes)", _IF_CHECKPOINT),
        ("lastCheckpointFullSize", Kind.GAUGE, "all state it refers to (bytes)", _IF_CHECKPOINT),
        ("lastCheckpointExternalPath", Kind.TEXT, "where it is", "if it stays after the job"),
        ("lastCheckpointRestoreTimestamp", Kind.GAUGE, "when the job was restored (ms)", _IF_RESTORED),
        ("numEpochs", Kind.GAUGE, "epochs over all regions; Penstock's own, as all that has epoch in its name"),
        ("numEpochsPerSecond", Kind.GAUGE, "over the last seconds"),
        ("lastEpochDuration", Kind.GAUGE, "all of the last epoch (ms)", _IF_EPOCH),
        ("lastEpochPlanningTime", Kind.GAUGE, "until it was clear who reads what (ms)", _IF_EPOCH),
        ("lastEpochRunningTime", Kind.GAUGE, "until all subtasks were done (ms)", _IF_EPOCH),
        ("lastEpochCompletingTime", Kind.GAUGE, "until its checkpoint and output were (ms)", _IF_EPOCH),
        ("epochDurationP50", Kind.GAUGE, "the median over the last seconds (ms)", _IF_EPOCH),
        ("epochDurationP99", Kind.GAUGE, "99 % of the epochs of the last seconds took no longer (ms)", _IF_EPOCH),
    ),
    *_of(
        Scope.LATENCY,
        (
            "latency",
            Kind.HISTOGRAM,
            "how long markers took from a source to an operator (ms); metrics.latency.granularity says what is kept "
            "apart",
            "if metrics.latency.interval is set",
        ),
    ),
    *_of(
        Scope.TASK,
        ("numRecordsIn", Kind.COUNTER, "records that came in; for sources: that were read"),
        ("numRecordsInPerSecond", Kind.METER, "the same over the last seconds"),
        ("numRecordsOut", Kind.COUNTER, "records that went to other tasks"),
        ("numRecordsOutPerSecond", Kind.METER, "the same over the last seconds"),
        ("numBytesIn", Kind.COUNTER, "bytes that came in from other tasks"),
        ("numBytesInPerSecond", Kind.METER, "the same over the last seconds"),
        ("numBytesOut", Kind.COUNTER, "bytes that went to other tasks"),
        ("numBytesOutPerSecond", Kind.METER, "the same over the last seconds"),
        ("currentInputWatermark", Kind.GAUGE, "event time of the input (ms); -2^63 before the first watermark"),
        ("busyTimeMsPerSecond", Kind.GAUGE, "time at work, of each second (ms)"),
        ("idleTimeMsPerSecond", Kind.GAUGE, "time without input (ms)"),
        ("backPressuredTimeMsPerSecond", Kind.GAUGE, "time in which slower tasks downstream held it up (ms)"),
        ("isBackPressured", Kind.GAUGE, "1 if it was held up for more than a tenth of the last seconds, else 0"),
        ("accumulateBusyTimeMs", Kind.GAUGE, "time at work of this attempt (ms)"),
        ("stateSize", Kind.GAUGE, "bytes of state in its last checkpoint; Penstock's own"),
    ),
    *_of(
        Scope.OPERATOR,
        ("numRecordsIn", Kind.COUNTER, "records that came in; of a generated loop, the first operator has them"),
        ("numRecordsInPerSecond", Kind.METER, "the same over the last seconds"),
        ("numRecordsOut", Kind.COUNTER, "records that it emitted; of a generated loop, the last operator has them"),
        ("numRecordsOutPerSecond", Kind.METER, "the same over the last seconds"),
        ("currentInputWatermark", Kind.GAUGE, "event time of the input (ms)"),
        ("currentInput1Watermark", Kind.GAUGE, "event time of the first input (ms)", _IF_TWO_INPUTS),
        ("currentInput2Watermark", Kind.GAUGE, "event time of the second input (ms)", _IF_TWO_INPUTS),
        ("currentOutputWatermark", Kind.GAUGE, "event time of the output (ms)"),
        ("watermarkLag", Kind.GAUGE, "how far the output watermark is behind the clock (ms)", "sources"),
        ("numLateRecordsDropped", Kind.COUNTER, "records that came too late", "windows and interval joins"),
        ("numFiredTimers", Kind.COUNTER, "timers that fired", "operators with timers"),
        (
            "numRecordsInErrors",
            Kind.COUNTER,
            "records that a source could not read, or a function failed for",
            _IF_SKIPS,
        ),
        ("numRecordsSend", Kind.COUNTER, "records that were handed to the sink's writer", "sinks"),
        ("numRecordsSendErrors", Kind.COUNTER, "records that the other side refused", "sinks that have OnRefused"),
        ("totalCommittables", Kind.COUNTER, "what was handed to the committer", _IF_COMMITS),
        ("successfulCommittables", Kind.COUNTER, "what it has committed", _IF_COMMITS),
        ("failedCommittables", Kind.COUNTER, "what it has given up", _IF_COMMITS),
        ("retriedCommittables", Kind.COUNTER, "what it will try again", _IF_COMMITS),
        ("pendingCommittables", Kind.GAUGE, "what it has yet to commit", _IF_COMMITS),
        ("pendingRecords", Kind.GAUGE, "records that wait at the source (records lag)", _IF_KAFKA),
        ("KafkaSourceReader.topic.partition.currentOffset", Kind.GAUGE, "the last offset that was read", _IF_KAFKA),
        ("KafkaSourceReader.commitsSucceeded", Kind.COUNTER, "commits of offsets that went well", _IF_KAFKA),
        ("KafkaSourceReader.commitsFailed", Kind.COUNTER, "commits of offsets that did not", _IF_KAFKA),
    ),
)

DEFINED = {(each.scope, each.name): each for each in CATALOGUE}


def as_markdown() -> str:
    """The tables of docs/metrics.md."""
    titles = {
        Scope.PROCESS: "The process that runs jobs",
        Scope.JOB: "Jobs",
        Scope.LATENCY: "Latency",
        Scope.TASK: "Tasks",
        Scope.OPERATOR: "Operators",
    }
    lines: list[str] = []
    for scope in Scope:
        lines += [
            f"### {titles[scope]}",
            "",
            f"In Prometheus `flink_{scope.value}_<name>`, with the labels {', '.join(scope.variables)}.",
            "",
            "| metric | kind | meaning | reported |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| `{each.name}` | {each.kind.value} | {each.meaning} | {each.condition or 'always'} |"
            for each in CATALOGUE
            if each.scope is scope
        ]
        lines.append("")
    return "\n".join(lines)
