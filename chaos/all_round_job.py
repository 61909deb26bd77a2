"""A job with a bit of everything, whose results are known beforehand (see `expected.py`).

Numbers, priced by broadcast rules at event-time timers, are counted per key in windows, sessions and by timers; a side
output takes some of them. A second region of the job does not touch the first. In a third one, visits (objects of a
class of this script that no function names, with a list inside) take two branches: one changes them, the other keeps
them in state and meets a second input that is silent most of the time, so that the whole job is idle for a while. All
sinks write exactly once, two kinds of them: `FileSink`, and a two-phase commit of its own. Whatever happens to its
processes meanwhile, the lines in the output folder are those of a run in which nothing happened.

    penstock run chaos/all_round_job.py --output /tmp/out --records 10000 --checkpoints /tmp/checkpoints
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.serialization import Encoder
from penstock.common.watermark_generator import WatermarkGenerator, WatermarkOutput
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy
from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    SourceFunction,
    TwoPhaseCommitSinkFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

POINTS = (
    "start",
    "restore",
    "record",
    "timer",
    "snapshot",
    "begin",
    "before-pre-commit",
    "after-pre-commit",
    "before-commit",
    "after-commit",
    "abort",
    "before-file-commit",
    "amid-file-commit",
    "after-file-commit",
)
"""Where a process can be told to die; at those of a file commit it is the driver's."""

KEYS = 7
WINDOW = 40
SESSION_GAP = 25
BUCKET = 100
CALLS_OF_A_KEY = 2
SEVENTH = OutputTag("seventh")
RULES = MapStateDescriptor("rules")


def price_of_rule(rule: int) -> int:
    return rule % 5 + 1


def rule_at(number: int) -> int:
    """Rule r holds from time 50 r on."""
    return number // 50


def is_in_a_session(number: int) -> bool:
    """Numbers come in bursts with pauses in between."""
    return number % 90 < 40


@dataclass(frozen=True)
class Settings:
    output: str
    records: int = 2000
    die_at: tuple[str, ...] = ()
    """`point:n`: the process that is the n-th to reach the point is killed there; `point:n:raise`: raises there."""
    counts: str = ""
    """Where it is counted who has reached which point; with the output unless set."""
    has_other_region: bool = True
    idle_s: float = 1.5
    """How long the callers are silent between their two calls."""


@dataclass
class Visit:
    """No function names this class: it is known only by the elements of a collection, and by state that holds them."""

    number: int
    marks: list[int]


@dataclass(frozen=True)
class KillPoints:
    """Counts in files, so that the n-th time is the same whatever process it happens in."""

    folder: str
    plan: tuple[str, ...] = ()

    def reach(self, point: str) -> None:
        for planned in self.plan:
            name, number, *action = planned.split(":")
            if name == point and self._times_here(planned) == int(number):
                if action == ["raise"]:
                    raise RuntimeError(f"told to fail at {planned}")
                os.kill(os.getpid(), signal.SIGKILL)

    def _times_here(self, planned: str) -> int:
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, planned), "ab") as counter:
            counter.write(b".")
            counter.flush()
            return os.fstat(counter.fileno()).st_size


# --- functions -------------------------------------------------------------------------------------------------------


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


class RightBehind(WatermarkGenerator):
    """A generator of the program's own: after every element, all up to it has come."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing new since the last element."""


class RuleTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value) * 50


class Pass(MapFunction, CheckpointedFunction):
    """Passes numbers on; how many is kept in list state, so that there is some to deal out."""

    def __init__(self, kill: KillPoints) -> None:
        self._kill = kill
        self._passed = 0

    def initialize_state(self, context: Any) -> None:
        self._kill.reach("restore" if context.is_restored() else "start")
        self._counts = context.get_operator_state_store().get_list_state(ListStateDescriptor("passed"))
        self._passed = sum(self._counts.get())

    def snapshot_state(self, context: Any) -> None:
        self._kill.reach("snapshot")
        self._counts.update([self._passed])

    def map(self, value: int) -> int:
        self._passed += 1
        self._kill.reach("record")
        return value


class Price(KeyedBroadcastProcessFunction):
    """Prices each number by the rule of its time, as soon as time says that the rule is known."""

    def __init__(self, kill: KillPoints) -> None:
        self._kill = kill

    def open(self, runtime_context: Any) -> None:
        self._waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_element(self, value: int, ctx: Any) -> None:
        self._waiting.put(value, True)
        ctx.timer_service().register_event_time_timer(value)

    def process_broadcast_element(self, value: int, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, price_of_rule(value))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        self._kill.reach("timer")
        self._waiting.remove(timestamp)
        price = ctx.get_broadcast_state(RULES).get(rule_at(timestamp))
        yield ctx.get_current_key(), timestamp, price
        if timestamp % 7 == 0:
            yield SEVENTH, f"seventh {timestamp} {price}"


class Totals(KeyedProcessFunction):
    """Counts and adds up by key: a line for each stretch of time, and one for all at the end."""

    def open(self, runtime_context: Any) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total"))
        self._stretches = runtime_context.get_map_state(MapStateDescriptor("stretches"))

    def process_element(self, value: tuple[int, int, int], ctx: Any) -> None:
        _, number, price = value
        end = number // BUCKET * BUCKET + BUCKET - 1
        count, total = self._stretches.get(end) or (0, 0)
        self._stretches.put(end, (count + 1, total + price))
        count, total = self._total.value() or (0, 0)
        self._total.update((count + 1, total + price))
        ctx.timer_service().register_event_time_timer(end)
        ctx.timer_service().register_event_time_timer(MAX_LONG_VALUE)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        if timestamp == MAX_LONG_VALUE:
            yield "total {} {} {}".format(ctx.get_current_key(), *self._total.value())
            self._total.clear()
        else:
            yield "stretch {} {} {} {}".format(ctx.get_current_key(), timestamp, *self._stretches.get(timestamp))
            self._stretches.remove(timestamp)


class VisitTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.number)


class Mark(MapFunction):
    """Changes what it gets, which nobody else may notice."""

    def map(self, value: Any) -> str:
        value.marks.append(0)
        return f"marked {value.number} {len(value.marks)}"


class Calls(SourceFunction, CheckpointedFunction):
    """One call for each key, a long silence, and another call for each."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._made = 0
        self._is_cancelled = False

    def initialize_state(self, context: Any) -> None:
        self._count = context.get_operator_state_store().get_list_state(ListStateDescriptor("made"))
        self._made = sum(self._count.get())

    def snapshot_state(self, context: Any) -> None:
        self._count.update([self._made])

    def run(self, ctx: Any) -> None:
        silence = threading.Event()
        while self._made < CALLS_OF_A_KEY * KEYS and not self._is_cancelled:
            if self._made == KEYS:
                ctx.mark_as_temporarily_idle()
                silence.wait(self._idle_s)
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp(self._made % KEYS, MAX_LONG_VALUE - 1)
                self._made += 1

    def cancel(self) -> None:
        self._is_cancelled = True


class Visited(KeyedCoProcessFunction):
    """Keeps visits as they came until their time, which the silent callers do not hold back; numbers the calls."""

    def open(self, runtime_context: Any) -> None:
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))
        self._calls = runtime_context.get_state(ValueStateDescriptor("calls"))

    def process_element1(self, value: Any, ctx: Any) -> None:
        self._waiting.add(value)
        ctx.timer_service().register_event_time_timer(value.number)

    def process_element2(self, value: int, ctx: Any) -> Iterator[str]:
        self._calls.update((self._calls.value() or 0) + 1)
        yield f"call {value} {self._calls.value()}"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        waiting = list(self._waiting.get())
        for visit in waiting:
            if visit.number == timestamp:
                yield f"visit {timestamp} {sum(visit.marks)}"
        self._waiting.update([visit for visit in waiting if visit.number != timestamp])


class CountAndSum(AggregateFunction):
    """A window's line: what it is, key, first number, count, sum of the prices."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_accumulator(self) -> tuple[Any, ...]:
        return (None, None, 0, 0)

    def add(self, value: tuple[int, int, int], accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.merge(accumulator, (value[0], value[1], 1, value[2]))

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        first, other = sorted((acc_a, acc_b), key=lambda each: (each[1] is None, each[1]))
        return (first[0], first[1], first[2] + other[2], first[3] + other[3])

    def get_result(self, accumulator: tuple[Any, ...]) -> str:
        return "{} {} {} {} {}".format(self._name, *accumulator)


# --- sinks -----------------------------------------------------------------------------------------------------------


@dataclass
class Transaction:
    name: str
    lines: int = 0


class FileTransactions(TwoPhaseCommitSinkFunction):
    """A file for each transaction, hidden until it is committed. Says so when one is lost, or taken back too late."""

    def __init__(self, folder: str, kill: KillPoints) -> None:
        self._folder = folder
        self._kill = kill
        self._open: dict[str, Any] = {}

    def begin_transaction(self) -> Transaction:
        self._kill.reach("begin")
        return Transaction(uuid.uuid4().hex)

    def invoke(self, transaction: Transaction, value: str, context: Any) -> None:
        if transaction.name not in self._open:
            os.makedirs(self._folder, exist_ok=True)
            self._open[transaction.name] = open(self._hidden(transaction), "w")  # noqa: SIM115  Until it is committed.
        self._open[transaction.name].write(f"{value}\n")
        transaction.lines += 1

    def pre_commit(self, transaction: Transaction) -> None:
        self._kill.reach("before-pre-commit")
        if (file := self._open.pop(transaction.name, None)) is not None:
            file.close()
        self._kill.reach("after-pre-commit")

    def commit(self, transaction: Transaction) -> None:
        self._kill.reach("before-commit")
        shown = self._shown(transaction)
        if os.path.exists(self._hidden(transaction)):
            os.replace(self._hidden(transaction), shown)
        elif transaction.lines and not os.path.exists(shown):
            raise RuntimeError(f"lost: {transaction} was to be committed, and its file is gone")
        self._kill.reach("after-commit")

    def abort(self, transaction: Transaction) -> None:
        self._kill.reach("abort")
        if (file := self._open.pop(transaction.name, None)) is not None:
            file.close()
        Path(self._hidden(transaction)).unlink(missing_ok=True)
        if os.path.exists(self._shown(transaction)):
            raise RuntimeError(f"too late: {transaction} was to be aborted, and it is committed")

    def _hidden(self, transaction: Transaction) -> str:
        return os.path.join(self._folder, f".{transaction.name}")

    def _shown(self, transaction: Transaction) -> str:
        return os.path.join(self._folder, transaction.name)


class KillableCommitter(FileCommitter):
    def __init__(self, base_path: str, kill: KillPoints) -> None:
        super().__init__(base_path)
        self._kill = kill

    def commit(self, requests: list[Any]) -> None:
        self._kill.reach("before-file-commit")
        super().commit(requests[: len(requests) // 2])
        self._kill.reach("amid-file-commit")
        super().commit(requests[len(requests) // 2 :])
        self._kill.reach("after-file-commit")


@dataclass(frozen=True)
class KillableFileSink(FileSink):
    """A FileSink whose commit can be cut short."""

    kill: KillPoints

    def create_committer(self, context: Any) -> KillableCommitter:
        return KillableCommitter(self.options.base_path, self.kill)


def file_sink(folder: Path, policy: RollingPolicy, kill: KillPoints) -> FileSink:
    builder = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return KillableFileSink(builder.with_rolling_policy(policy).with_bucket_check_interval(200).build().options, kill)


# --- the job ---------------------------------------------------------------------------------------------------------


def build(env: StreamExecutionEnvironment, settings: Settings) -> None:
    """Put the job on `env`. Lines go to folders in `settings.output`: windows, sessions, others, region, visits."""
    output = Path(settings.output)
    kill = KillPoints(settings.counts or str(output / ".kill-points"), settings.die_at)
    number_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    rule_time = WatermarkStrategy.for_generator(RightBehind).with_timestamp_assigner(RuleTime())
    last = settings.records - 1
    numbers = (
        env.from_sequence(0, last)
        .uid("numbers")
        .map(Pass(kill))
        .uid("pass")
        .assign_timestamps_and_watermarks(number_time)
        .uid("number-time")
    )
    rules = (
        env.from_collection(list(range(rule_at(last) + 1)))
        .uid("rules")
        .assign_timestamps_and_watermarks(rule_time)
        .uid("rule-time")
    )
    by_key = numbers.key_by(lambda number: number % KEYS)
    priced = by_key.connect(rules.broadcast(RULES)).process(Price(kill)).uid("price")
    keyed = priced.key_by(lambda value: value[0])
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW))).aggregate(CountAndSum("window"))
    sessions = (
        priced.filter(lambda value: is_in_a_session(value[1]))
        .uid("bursts")
        .key_by(lambda value: value[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(SESSION_GAP)))
        .aggregate(CountAndSum("session"))
    )
    slowly = RollingPolicy.default_rolling_policy(part_size=3000, rollover_interval=3000, inactivity_interval=1500)
    windows.uid("windows").sink_to(file_sink(output / "windows", slowly, kill)).uid("window-sink")
    at_once = RollingPolicy.on_checkpoint_rolling_policy()
    sessions.uid("sessions").sink_to(file_sink(output / "sessions", at_once, kill)).uid("session-sink")
    others = keyed.process(Totals()).uid("totals").union(priced.get_side_output(SEVENTH))
    others.add_sink(FileTransactions(str(output / "others"), kill)).uid("other-sink")
    if not settings.has_other_region:
        return
    region = env.from_sequence(0, last // 2).uid("region").rebalance().map(lambda number: f"region {number}")
    region.uid("region-lines").sink_to(file_sink(output / "region", slowly, kill)).uid("region-sink")
    build_visits(env, settings, kill)


def build_visits(env: StreamExecutionEnvironment, settings: Settings, kill: KillPoints) -> None:
    """A region of its own, most of whose life is silence."""
    visit_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(VisitTime())
    visits = (
        env.from_collection([Visit(number, [number]) for number in range(number_of_visits(settings.records))])
        .uid("visits")
        .assign_timestamps_and_watermarks(visit_time)
        .uid("visit-time")
    )
    calls = env.add_source(Calls(settings.idle_s)).uid("calls")
    visited = visits.key_by(lambda visit: visit.number % KEYS).connect(calls.key_by(lambda key: key)).process(Visited())
    lines = visited.uid("visited").union(visits.map(Mark()).uid("mark"))
    lines.add_sink(FileTransactions(str(Path(settings.output) / "visits"), kill)).uid("visit-sink")


def number_of_visits(records: int) -> int:
    return records // 4


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="the folder in which the results appear")
    parser.add_argument("--records", type=int, default=Settings.records)
    parser.add_argument("--idle", type=float, default=Settings.idle_s, help="seconds of silence in the middle")
    parser.add_argument("--epoch-records", type=int, help="how many of them a source subtask reads in one epoch")
    parser.add_argument("--parallelism", type=int)
    parser.add_argument("--checkpoints", help="where checkpoints go")
    parser.add_argument("--interval", default="200 ms", help="how often they are taken")
    parser.add_argument("--restore", help="a checkpoint or savepoint to begin with")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--die-at", action="append", default=[], metavar="POINT:N", help="kill the process there")
    return parser.parse_args(arguments)


def configuration_of(parsed: argparse.Namespace) -> Configuration:
    settings = {
        "execution.checkpointing.interval": parsed.interval,
        "execution.checkpointing.dir": parsed.checkpoints,
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.state-recovery.path": parsed.restore,
        "execution.state-recovery.claim-mode": "CLAIM",
        "penstock.epoch.max-records": parsed.epoch_records,
        "penstock.epoch.interval": "80 ms",  # It lasts long enough to be disturbed.
        "state.backend.type": parsed.backend,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1000,
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    return Configuration.from_dict({key: str(value) for key, value in settings.items() if value is not None})


def main() -> None:
    parsed = parse()
    env = StreamExecutionEnvironment.get_execution_environment(configuration_of(parsed))
    if parsed.parallelism is not None:
        env.set_parallelism(parsed.parallelism)
    output = os.path.abspath(parsed.output)
    build(env, Settings(output, parsed.records, tuple(parsed.die_at), idle_s=parsed.idle))
    env.execute("all-round")


if __name__ == "__main__":
    main()
