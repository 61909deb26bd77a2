"""State read with Spark, and savepoints written from DataFrames."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import Any

import pytest

from penstock import state_processor
from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import LocalFolder
from penstock.checkpoint.metadata import CANONICAL, METADATA, NATIVE, CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.savepoints import write_savepoint
from penstock.common import Row
from penstock.common.exceptions import CheckpointError, CorruptStateError, StateMismatchError
from penstock.datastream import KeyedProcessFunction, MapFunction
from penstock.datastream.functions import CheckpointedFunction, KeyedBroadcastProcessFunction
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import GlobalWindow, TimeWindow
from penstock.graph.stream_graph import operator_id_of
from penstock.runtime.key_groups import KeyOwners
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent
from penstock.runtime.windowing.panes import CONTENTS_TABLE, MERGING_TABLE
from penstock.state_processor import OperatorIdentifier

pytestmark = pytest.mark.spark

TOTALS, SOURCE, MAPPER = (operator_id_of(uid) for uid in ("totals", "source", "mapper"))
WINDOWS = "0123456789abcdef0123456789abcdef"
OPERATORS = (
    OperatorEntry(TOTALS, "Totals", "totals"),
    OperatorEntry(WINDOWS, "Window(Sessions)"),
    OperatorEntry(MAPPER, "Map", "mapper"),
)
PARALLELISM, MAX_PARALLELISM = 2, 128


# --- state to read ---------------------------------------------------------------------------------------------------


def keyed(operator: str, name: str, contents: dict[Any, dict[Any, Any]]) -> list[list[tuple[str, str, str, Any]]]:
    """The blocks of each subtask."""
    owners = KeyOwners(MAX_PARALLELISM, PARALLELISM)
    return [
        [
            (operator, "keyed", name, {space: {key: value for key, value in keys.items() if owners[key] == subtask}})
            for space, keys in contents.items()
        ]
        for subtask in range(PARALLELISM)
    ]


BASE = {
    "count": {VOID_NAMESPACE: {"ada": 1, "bob": 2, "cyd": 3, "dan": 4}},
    "orders": {VOID_NAMESPACE: {"ada": [(1, "x")], "bob": [(2, "y"), (3, None)]}},
    "prices": {VOID_NAMESPACE: {"ada": {"x": 1.5}, "cyd": {"y": 2.0, "z": 3.0}}},
    "visits": {VOID_NAMESPACE: {"ada": (7, 1000), "bob": (8, 2000)}},
    "mixed": {VOID_NAMESPACE: {"ada": 1, ("b", 2): "two"}},
    "_timers/user-timers/event-time": {(500, VOID_NAMESPACE): {"ada": True, "bob": True}},
    "_timers/user-timers/processing-time": {(900, VOID_NAMESPACE): {"cyd": True}},
}
CHANGES = {"count": {VOID_NAMESPACE: {"ada": 10, "dan": REMOVED, "eve": 5}}}
PANES = {
    CONTENTS_TABLE: {TimeWindow(0, 5): {"ada": [1, 2]}, GlobalWindow(): {"bob": [3]}},
    MERGING_TABLE: {VOID_NAMESPACE: {"cyd": {TimeWindow(0, 7): [4], TimeWindow(20, 30): [5, 6]}}},
}
LISTS = [
    {"seen": ("split", [1, 2]), "all": ("union", ["a"]), "rules": ("broadcast", {"r": Row(limit=5)})},
    {"seen": ("split", [3]), "all": ("union", ["b"]), "rules": ("broadcast", {"r": Row(limit=5)})},
]


def write_file(folder: LocalFolder, name: str, epoch: int, extent: Extent, blocks: list[Any]) -> StateHandle:
    with folder.create(name) as out:
        writer = StateFileWriter(out)
        for operator, kind, state, value in blocks:
            writer.add(operator, kind, state, encode_state(value))
        writer.finish()
    return StateHandle(name, epoch, writer.size, extent, writer.states())


def make_native(folder: LocalFolder) -> str:
    """A savepoint of two subtasks, each with a base and a delta."""
    folder.make()
    subtasks = []
    for subtask in range(PARALLELISM):
        base = [block for name, each in BASE.items() for block in keyed(TOTALS, name, each)[subtask]]
        base += [block for name, each in PANES.items() for block in keyed(WINDOWS, name, each)[subtask]]
        delta = [block for name, each in CHANGES.items() for block in keyed(TOTALS, name, each)[subtask]]
        delta.append((MAPPER, "operator", ", ".join(LISTS[subtask]), LISTS[subtask]))
        delta.append((TOTALS, "memory", "task", "what the task remembers"))
        files = ((f"s{subtask}-1", 1, Extent.ALL, base), (f"s{subtask}-2", 2, Extent.CHANGES, delta))
        subtasks.append(tuple(write_file(folder, *file) for file in files))
    vertices = (
        VertexEntry((OperatorEntry(SOURCE, "Source: Numbers", "source"),), 1, MAX_PARALLELISM, ((),)),
        VertexEntry(OPERATORS, PARALLELISM, MAX_PARALLELISM, tuple(subtasks)),
    )
    metadata = CheckpointMetadata(
        "f" * 32, "job", 2, 0, "topology", vertices, {SOURCE: encode_state({"read": 42})}, {}, NATIVE
    )
    folder.write(METADATA, metadata.encode())
    return folder.uri


@pytest.fixture(scope="module")
def savepoints(spark, tmp_path_factory) -> dict[str, str]:
    """The same state in both formats."""
    folder = tmp_path_factory.mktemp("savepoints")
    native = make_native(LocalFolder(str(folder / "native")))
    return {NATIVE: native, CANONICAL: write_savepoint(find_checkpoint(native), str(folder / "canonical"))}


@pytest.fixture(params=[NATIVE, CANONICAL])
def reader(request, savepoints) -> state_processor.SavepointReader:
    return state_processor.read(savepoints[request.param])


def rows(data_frame) -> list[Any]:
    """The rows as plain values, in order."""
    return sorted(map(plain, data_frame.collect()), key=repr)


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return [plain(each) for each in value] if isinstance(value, list) else value


def types(data_frame) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in data_frame.dtypes)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_operators_and_their_states_are_listed(reader):
    source, totals, windows, mapper = reader.operators()
    assert (source.uid, source.name, source.parallelism, source.states) == ("source", "Source: Numbers", 1, ())
    assert (totals.uid, totals.parallelism, totals.max_parallelism) == ("totals", 2, 128)
    assert [(state.name, state.kind) for state in totals.states] == [
        ("_timers/user-timers/event-time", "timers"),
        ("_timers/user-timers/processing-time", "timers"),
        *((name, "keyed") for name in ("count", "mixed", "orders", "prices", "visits")),
    ]
    assert (windows.uid, windows.operator_id) == (None, WINDOWS)
    assert {(state.name, state.kind) for state in mapper.states} == {
        ("seen", "operator"), ("all", "operator"), ("rules", "operator"),
    }  # fmt: skip


def test_positions_of_sources_are_reported(reader):
    assert reader.positions() == {"source": {"read": 42}}
    assert reader.checkpoint_id == 2


def test_keyed_state_is_as_after_the_last_change(reader):
    counts = reader.keyed_state("totals", "count")
    assert types(counts) == "key string, value bigint"
    assert rows(counts) == [("ada", 10), ("bob", 2), ("cyd", 3), ("eve", 5)]


def test_one_task_reads_what_one_subtask_left(reader):
    assert reader.keyed_state("totals", "count", "key string, value int").rdd.getNumPartitions() == PARALLELISM


def test_lists_and_maps_have_their_types(reader):
    orders = reader.keyed_state("totals", "orders")
    assert types(orders) == "key string, value array<struct<_1:bigint,_2:string>>"
    assert rows(orders) == [("ada", [(1, "x")]), ("bob", [(2, "y"), (3, None)])]
    prices = reader.keyed_state("totals", "prices")
    assert types(prices) == "key string, value map<string,double>"
    assert rows(prices) == [("ada", {"x": 1.5}), ("cyd", {"y": 2.0, "z": 3.0})]


def test_values_of_several_kinds_are_json(reader):
    mixed = reader.keyed_state("totals", "mixed")
    assert types(mixed) == "key string, value string"
    assert rows(mixed) == [('"ada"', "1"), ('["b", 2]', '"two"')]


def test_schema_says_the_types(reader):
    counts = reader.keyed_state("totals", "count", schema="key binary, value decimal(10,2)")
    assert types(counts) == "key binary, value decimal(10,2)"
    assert sum(row.value for row in counts.collect()) == 20


def test_schema_may_leave_columns_out(reader):
    orders = reader.keyed_state("totals", "orders", schema="value array<struct<number:int,name:string>>")
    assert types(orders) == "key string, value array<struct<number:int,name:string>>"
    assert rows(orders)[0] == ("ada", [(1, "x")])


def test_times_of_state_with_time_to_live_are_left_out(reader):
    assert rows(reader.keyed_state("totals", "visits", has_ttl=True)) == [("ada", 7), ("bob", 8)]


def test_windows_show_what_they_hold(reader):
    panes = reader.window_state("Window(Sessions)")
    assert types(panes) == "key string, window string, window_start bigint, window_end bigint, value array<bigint>"
    assert [(row[0], *row[2:]) for row in rows(panes)] == [
        ("ada", 0, 5, [1, 2]),
        ("bob", None, None, [3]),
        ("cyd", 0, 7, [4]),
        ("cyd", 20, 30, [5, 6]),
    ]


def test_namespaces_are_shown_where_there_are_any(reader):
    panes = reader.keyed_state("Window(Sessions)", CONTENTS_TABLE)
    assert types(panes) == "key string, namespace string, value array<bigint>"
    assert ("ada", "TimeWindow(start=0, end=5)", [1, 2]) in rows(panes)


def test_timers_of_both_time_domains_are_reported(reader):
    assert rows(reader.timers(OperatorIdentifier.for_uid("totals"))) == [
        ("ada", "EVENT_TIME", 500, None, "user-timers"),
        ("bob", "EVENT_TIME", 500, None, "user-timers"),
        ("cyd", "PROCESSING_TIME", 900, None, "user-timers"),
    ]


def test_operator_state_is_read_by_its_distribution(reader):
    assert rows(reader.list_state("mapper", "seen")) == [(0, 1), (0, 2), (1, 3)]
    assert rows(reader.union_state("mapper", "all")) == [(0, "a"), (1, "b")]
    assert rows(reader.broadcast_state("mapper", "rules")) == [("r", (5,))]


def test_operator_without_timers_has_an_empty_table(reader):
    assert rows(reader.timers("mapper")) == []


def test_state_read_the_wrong_way_says_which_is_right(reader):
    with pytest.raises(StateMismatchError, match=r"state 'all' is not read with list_state but with union_state"):
        reader.list_state("mapper", "all")


def test_unknown_operator_and_state_are_refused_with_what_there_is(reader):
    with pytest.raises(
        StateMismatchError, match=r"no operator 'total'; its operators are: .*'Totals' \(uid 'totals'\)"
    ):
        reader.keyed_state("total", "count")
    with pytest.raises(StateMismatchError, match=r"operator 'Totals' has no keyed state 'counts'; .*'count' \(keyed\)"):
        reader.keyed_state("totals", "counts")
    with pytest.raises(ValueError, match="schema names 'n'; the columns are key, namespace, value"):
        reader.keyed_state("totals", "count", schema="n int")


def test_checkpoints_are_read_like_savepoints(savepoints, tmp_path):
    shutil.copytree(savepoints[NATIVE].removeprefix("file://"), tmp_path / "job")
    metadata = replace(find_checkpoint(savepoints[NATIVE]).metadata, savepoint_format=None)
    (tmp_path / "job" / METADATA).unlink()
    (tmp_path / "job" / "chk-2").mkdir()
    (tmp_path / "job" / "chk-2" / METADATA).write_bytes(metadata.encode())
    for path in (tmp_path / "job" / "chk-2", tmp_path / "job"):
        counts = state_processor.read(str(path)).keyed_state("totals", "count", schema="key string, value int")
        assert rows(counts) == [("ada", 10), ("bob", 2), ("cyd", 3), ("eve", 5)]


def test_damaged_file_is_named(savepoints, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(savepoints[CANONICAL].removeprefix("file://"), folder)
    (file,) = folder.glob(f"state/{TOTALS}/keyed/count/part-00001.parquet")
    content = bytearray(file.read_bytes())
    content[40] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(CorruptStateError, match=r"operator 'Totals': state 'count' in file .*part-00001.* damaged"):
        state_processor.read(str(folder)).keyed_state("totals", "count")


def test_path_without_state_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint or savepoint at"):
        state_processor.read(str(tmp_path))


# --- writing ---------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(spark, tmp_path):
    people = spark.createDataFrame(
        [(f"p{n}", n, [n, n + 1], {"n": n}) for n in range(1000)], "key string, n int, l array<int>, m map<string,int>"
    )
    path = (
        state_processor.new_savepoint(max_parallelism=64)
        .with_keyed_state("people", "number", people, value="n")
        .with_keyed_state("people", "list", people, value="l")
        .with_keyed_state("people", "map", people, key=lambda row: (row.key, row.n), value="m")
        .with_timers("people", people, timestamp=lambda row: row.n * 10)
        .with_list_state("mapper", "seen", people.where("n < 10"), value="n")
        .with_union_state("mapper", "all", people.where("n < 3"), value=lambda row: Row(n=row.n))
        .with_broadcast_state("mapper", "rules", people.where("n < 2"), value="l")
        .write(str(tmp_path / "savepoint"))
    )  # fmt: skip
    reader = state_processor.read(path)
    assert rows(reader.keyed_state("people", "number")) == sorted([(f"p{n}", n) for n in range(1000)], key=repr)
    assert rows(reader.keyed_state("people", "list").where("key = 'p7'")) == [("p7", [7, 8])]
    assert rows(reader.keyed_state("people", "map").where("key._2 = 7")) == [(("p7", 7), {"n": 7})]
    assert reader.timers("people").where("timestamp = 70 and time_domain = 'EVENT_TIME'").first().key == "p7"
    assert sorted(row.value for row in reader.list_state("mapper", "seen").collect()) == list(range(10))
    assert types(reader.union_state("mapper", "all")) == "subtask bigint, value struct<n:bigint>"
    assert rows(reader.broadcast_state("mapper", "rules")) == [("p0", [0, 1]), ("p1", [1, 2])]
    assert {each.max_parallelism for each in reader.operators()} == {64}


def test_rows_without_a_value_have_no_state(spark, tmp_path):
    data = spark.createDataFrame([("a", 1), ("b", None)], "key string, value int")
    path = state_processor.new_savepoint().with_keyed_state("o", "s", data).write(str(tmp_path / "s"))
    assert rows(state_processor.read(path).keyed_state("o", "s")) == [("a", 1)]


def test_key_with_two_values_is_refused_and_nothing_stays_behind(spark, tmp_path):
    data = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "key string, value int")
    writer = state_processor.new_savepoint().with_keyed_state("o", "s", data)
    with pytest.raises(StateMismatchError, match="operator 'o': state 's' is given two values for the key 'a'"):
        writer.write(str(tmp_path / "s"))
    assert not (tmp_path / "s").exists()


def test_function_that_fails_is_reported(spark, tmp_path):
    data = spark.createDataFrame([("a", 0)], "key string, value int")
    writer = state_processor.new_savepoint().with_keyed_state("o", "s", data, value=lambda row: 1 / row.value)
    with pytest.raises(CheckpointError, match="writing state 's' of operator 'o': ZeroDivisionError: division by zero"):
        writer.write(str(tmp_path / "s"))


def test_mistakes_are_reported_before_anything_is_written(spark, tmp_path):
    data = spark.createDataFrame([("a", 0)], "key string, value int")
    writer = state_processor.new_savepoint().with_keyed_state("o", "s", data)
    with pytest.raises(StateMismatchError, match="state 's' is given twice"):
        writer.with_keyed_state("o", "s", data)
    with pytest.raises(StateMismatchError, match="a new savepoint has no operators to remove"):
        writer.remove_operator("o")
    with pytest.raises(CheckpointError, match="the savepoint would be empty"):
        state_processor.new_savepoint().write(str(tmp_path / "s"))
    with pytest.raises(ValueError, match="max_parallelism must be 1 to 32768, got 0"):
        state_processor.new_savepoint(max_parallelism=0)
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="is not empty"):
        writer.write(str(tmp_path))
    assert (tmp_path / "file").exists()


@pytest.mark.parametrize("base", [NATIVE, CANONICAL])
def test_what_is_not_changed_stays(spark, savepoints, tmp_path, base):
    before = state_processor.read(savepoints[base])
    doubled = before.keyed_state("totals", "count").selectExpr("key", "value * 2 AS value")
    path = (
        state_processor.from_existing(savepoints[base])
        .with_keyed_state("totals", "count", doubled)
        .with_list_state("mapper", "seen", spark.createDataFrame([(9,)], "value int"))
        .with_keyed_state("new", "n", doubled)
        .remove_operator("Window(Sessions)")
        .write(str(tmp_path / "changed"))
    )
    after = state_processor.read(path)
    assert [each.uid for each in after.operators()] == ["source", "totals", "mapper", "new"]
    assert rows(after.keyed_state("totals", "count")) == [("ada", 20), ("bob", 4), ("cyd", 6), ("eve", 10)]
    assert [row.value for row in after.list_state("mapper", "seen").collect()] == [9]
    for same in (
        lambda reader: rows(reader.keyed_state("totals", "orders")),
        lambda reader: rows(reader.timers("totals")),
        lambda reader: rows(reader.union_state("mapper", "all")),
        lambda reader: reader.positions(),
    ):
        assert same(before) == same(after)


# --- jobs ------------------------------------------------------------------------------------------------------------


class Counting(KeyedProcessFunction):
    """Counts the records of each key, and reports at time 1000 the keys that somebody set a timer for."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.sums = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last"))
        self.by_parity = runtime_context.get_map_state(MapStateDescriptor("by parity"))

    def process_element(self, value, ctx):
        key = ctx.get_current_key()
        self.count.update((self.count.value() or 0) + 1)
        self.sums.add(value)
        self.last.update([*list(self.last.get())[-1:], value])
        self.by_parity.put(value % 2, (self.by_parity.get(value % 2) or 0) + 1)
        yield f"{key}: {self.count.value()} {self.sums.get()} {list(self.last.get())} {dict(self.by_parity.items())}"

    def on_timer(self, timestamp, ctx):
        yield f"timer of {ctx.get_current_key()} at {timestamp}"


def printed(text: str) -> list[str]:
    return sorted(re.sub(r"^\d+> ", "", line) for line in text.splitlines())


def test_job_starts_from_state_that_was_never_in_a_job(spark, on_spark, tmp_path, capfd):
    data = spark.createDataFrame(
        [("a", 100, [7], {1: 5}), ("b", 200, [8], {0: 6})], "key string, n int, l array<int>, m map<int,int>"
    )
    path = (
        state_processor.new_savepoint()
        .with_keyed_state("counting", "count", data, value="n")
        .with_keyed_state("counting", "sum", data, value="n")
        .with_keyed_state("counting", "last", data, value="l")
        .with_keyed_state("counting", "by parity", data, value="m")
        .with_timers("counting", data.where("key = 'b'"), timestamp=lambda row: 1000)
        .write(str(tmp_path / "savepoint"))
    )
    env = on_spark(3, {"execution.state-recovery.path": path})
    stream = env.from_collection([("a", 3), ("c", 4)]).key_by(lambda pair: pair[0])
    stream.process(Values()).uid("counting").print()
    env.execute("continued")
    assert printed(capfd.readouterr().out) == [
        "a: 101 103 [7, 3] {1: 6}",
        "c: 1 4 [4] {0: 1}",
        "timer of b at 1000",
    ]


class Values(Counting):
    """Counts the second fields of pairs."""

    def process_element(self, value, ctx):
        yield from super().process_element(value[1], ctx)


class Seen(MapFunction, CheckpointedFunction):
    """Says what list and union state it was given."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.items = sorted(store.get_list_state(ListStateDescriptor("items")).get())
        self.shared = sorted(store.get_union_list_state(ListStateDescriptor("shared")).get())

    def snapshot_state(self, context):
        pass

    def map(self, value):
        return f"{len(self.items)} items, shared {self.shared}"


class Ruled(KeyedBroadcastProcessFunction):
    RULES = MapStateDescriptor("rules")

    def process_element(self, value, ctx):
        yield f"{value}: {ctx.get_broadcast_state(self.RULES).get(value)}"

    def process_broadcast_element(self, value, ctx):
        pass


def test_job_starts_from_operator_state_that_was_never_in_a_job(spark, on_spark, tmp_path, capfd):
    items = spark.range(6).selectExpr("cast(id as int) AS value")
    rules = spark.createDataFrame([("a", 1.5), ("b", 2.5)], "key string, value double")
    path = (
        state_processor.new_savepoint()
        .with_list_state("seen", "items", items)
        .with_union_state("seen", "shared", items.where("value < 2"))
        .with_broadcast_state("ruled", "rules", rules)
        .write(str(tmp_path / "savepoint"))
    )
    env = on_spark(3, {"execution.state-recovery.path": path})
    env.from_collection([0, 1, 2]).rebalance().map(Seen()).uid("seen").print()
    nothing = env.from_collection(["x"]).filter(lambda value: False).broadcast(Ruled.RULES)
    env.from_collection(["a", "b"]).key_by(lambda word: word).connect(nothing).process(Ruled()).uid("ruled").print()
    env.execute("continued")
    assert printed(capfd.readouterr().out) == ["2 items, shared [0, 1]"] * 3 + ["a: 1.5", "b: 2.5"]


def counting_job(env) -> None:
    stream = env.from_sequence(1, 3000).uid("numbers").key_by(lambda number: number % 3)
    stream.process(Counting()).uid("counting").print()


@pytest.mark.parametrize("format_type", [CANONICAL, NATIVE])
def test_job_continues_with_state_that_was_changed_in_between(spark, on_spark, tmp_path, capfd, format_type):
    env = on_spark(2, {"penstock.epoch.max-records": "500", "execution.checkpointing.interval": "1 ms"})
    counting_job(env)
    client = env.execute_async("before")
    client.master.trigger_checkpoint().result()  # Some records have been read.
    path = client.master.stop_with_savepoint(str(tmp_path / "savepoints"), False, format_type).result()
    client.get_job_execution_result().result()
    before = printed(capfd.readouterr().out)

    counts = state_processor.read(path).keyed_state("counting", "count")
    raised = counts.selectExpr("key", "value + 1000000 AS value")
    changed = state_processor.from_existing(path).with_keyed_state("counting", "count", raised)
    changed_path = changed.write(str(tmp_path / "changed"))

    assert 0 < sum(row.value for row in counts.collect()) == len(before)
    again = on_spark(3, {"execution.state-recovery.path": changed_path})
    counting_job(again)
    again.execute("after")
    after = printed(capfd.readouterr().out)
    assert len(before) + len(after) == 3000
    total = {key: sum(number for number in range(1, 3001) if number % 3 == key) for key in range(3)}
    for key in range(3):
        assert any(line.startswith(f"{key}: 1001000 {total[key]} ") for line in after)
