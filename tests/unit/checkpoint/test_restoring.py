"""A job continues from the state of another: at another parallelism, with other operators, in other chains."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.restoring import FoundCheckpoint, restore_job
from penstock.common import Types
from penstock.common.exceptions import CorruptStateError, StateMismatchError
from penstock.datastream import BroadcastProcessFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.functions import CheckpointedFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.chunk import encode_in_driver
from penstock.testing import JobInEpochs


class Sum(KeyedProcessFunction):
    """Emits (key, sum so far), and once more at a timer."""

    def open(self, runtime_context):
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        self._sum.update((self._sum.value() or 0) + value[1])
        ctx.timer_service().register_processing_time_timer(1_000_000)
        yield ctx.get_current_key(), self._sum.value()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "timer", self._sum.value()


class Keep(MapFunction, CheckpointedFunction):
    """Keeps what it saw in a list that is dealt out, and shows how many it has now."""

    def __init__(self, is_union: bool = False):
        self._is_union = is_union

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self._is_union else store.get_list_state
        self._saved = get(ListStateDescriptor("seen", Types.INT()))
        self._seen = list(self._saved.get())

    def snapshot_state(self, context):
        self._saved.update(self._seen)

    def map(self, value):
        if value is None:
            return sorted(self._seen)
        self._seen.append(value)
        return None


def summed(stream):
    return stream.key_by(lambda r: r[0]).process(Sum()).uid("sum")


records = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=40)


@settings(max_examples=40)
@given(parts=st.lists(records, min_size=2, max_size=5), data=st.data())
def test_keyed_state_and_timers_survive_any_change_of_parallelism(parts, data):
    expected: dict[int, int] = {}
    checkpoint, results = None, []
    for part in parts:
        parallelism = data.draw(st.sampled_from([1, 2, 3, 5, 128]))
        job = JobInEpochs(summed, parallelism, restored=checkpoint)
        results = job.epoch(part)
        checkpoint = job.checkpoint
        running = dict(expected)
        shown = []
        for key, value in part:
            running[key] = running.get(key, 0) + value
            shown.append(repr((key, running[key])))
        expected = running
        assert results == sorted(shown)
        job.close()
    last = JobInEpochs(summed, 2, restored=checkpoint)
    assert last.epoch([], now_ms=1_000_000) == sorted(repr((key, "timer", value)) for key, value in expected.items())


@settings(max_examples=40)
@given(parts=st.lists(st.lists(st.integers(), max_size=12), min_size=1, max_size=5), data=st.data())
def test_list_state_is_dealt_out_without_loss_or_doubles(parts, data):
    checkpoint = None
    for part in parts:
        build = lambda stream: stream.rebalance().map(Keep()).uid("keep")
        job = JobInEpochs(build, data.draw(st.integers(1, 4)), restored=checkpoint)
        job.epoch(part)
        checkpoint = job.checkpoint
    ask = JobInEpochs(lambda stream: stream.broadcast().map(Keep()).uid("keep"), 3, restored=checkpoint)
    shares = [eval(shown) for shown in ask.epoch([None])]
    assert sorted(item for share in shares for item in share) == sorted(item for part in parts for item in part)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_union_list_state_goes_to_everyone():
    union = lambda stream: stream.rebalance().map(Keep(is_union=True)).uid("keep")
    before = JobInEpochs(union, 2)
    before.epoch([1, 2, 3])
    build = lambda stream: stream.broadcast().map(Keep(is_union=True)).uid("keep")
    assert JobInEpochs(build, 3, restored=before.checkpoint).epoch([None]) == ["[1, 2, 3]"] * 3


def test_broadcast_state_goes_to_everyone():
    descriptor = MapStateDescriptor("rules", Types.STRING(), Types.INT())

    class Rules(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield value, sorted(ctx.get_broadcast_state(descriptor).items())

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(descriptor).put(*value)

    def build(stream):
        rules = stream.filter(lambda r: isinstance(r, tuple)).broadcast(descriptor)
        return stream.filter(lambda r: isinstance(r, str)).rebalance().connect(rules).process(Rules()).uid("rules")

    before = JobInEpochs(build, 2)
    before.epoch([("a", 1), ("b", 2)])
    after = JobInEpochs(build, 3, restored=before.checkpoint)
    assert after.epoch(["x", "y", "z"]) == [f"('{name}', [('a', 1), ('b', 2)])" for name in "xyz"]


# --- other programs --------------------------------------------------------------------------------------------------


def checkpoint_of(build, part, parallelism=2):
    job = JobInEpochs(build, parallelism)
    job.epoch(part)
    return job.checkpoint


def test_operator_may_be_added():
    checkpoint = checkpoint_of(summed, [(1, 5)])

    def longer(stream):
        return summed(stream.map(lambda r: (r[0], r[1] * 10))).key_by(lambda r: r[0]).reduce(lambda a, b: b)

    assert JobInEpochs(longer, 2, restored=checkpoint).epoch([(1, 1)]) == ["(1, 15)"]


def test_operator_may_move_into_another_chain():
    def chained(stream):
        return stream.map(Keep()).uid("keep")

    def on_its_own(stream):
        return stream.disable_chaining().map(Keep()).uid("keep").disable_chaining().map(lambda v: v)

    checkpoint = checkpoint_of(chained, [1, 2], parallelism=1)
    job = JobInEpochs(on_its_own, 1, restored=checkpoint)
    assert len(job.graph.vertices) > len(JobInEpochs(chained, 1).graph.vertices)
    assert job.epoch([None]) == ["[1, 2]"]


def test_operator_with_state_that_is_gone_is_an_error_that_names_both_sides():
    checkpoint = checkpoint_of(summed, [(1, 5)])

    def renamed(stream):
        return stream.key_by(lambda r: r[0]).process(Sum()).name("Totals").uid("totals")

    with pytest.raises(StateMismatchError) as error:
        JobInEpochs(renamed, 2, restored=checkpoint)
    message = str(error.value)
    assert "(uid 'sum'): keyed state" in message and "sum" in message
    assert "'Totals' (uid 'totals')" in message
    assert "--allowNonRestoredState" in message


def test_state_that_nobody_takes_may_be_left_behind():
    checkpoint = checkpoint_of(summed, [(1, 5)])
    other = JobInEpochs(lambda s: s.map(lambda r: r).uid("other"), 2, restored=checkpoint, allows_non_restored=True)
    assert other.epoch([(1, 5)]) == ["(1, 5)"]


def test_operator_without_state_may_go():
    checkpoint = checkpoint_of(lambda s: s.map(lambda r: r).uid("gone").rebalance().map(Keep()).uid("keep"), [1])
    job = JobInEpochs(lambda s: s.rebalance().map(Keep()).uid("keep"), 1, restored=checkpoint)
    assert job.epoch([None]) == ["[1]"]


def test_results_that_wait_for_their_commit_are_not_left_behind_unless_that_is_allowed():
    """The writer of such a sink need not have state."""
    checkpoint = checkpoint_of(lambda s: s.map(lambda r: r).uid("writer").rebalance().map(Keep()).uid("keep"), [1])
    [writer] = [id for vertex in checkpoint.metadata.vertices for id, name in vertex.names.items() if "Map" in name][:1]
    metadata = dataclasses.replace(checkpoint.metadata, committables={writer: encode_in_driver(["a transaction"])})
    checkpoint = dataclasses.replace(checkpoint, metadata=metadata)

    def other(stream):
        return stream.rebalance().map(Keep()).uid("keep")

    with pytest.raises(StateMismatchError, match=r"\(uid 'writer'\): results that are committed again"):
        JobInEpochs(other, 1, restored=checkpoint)
    assert JobInEpochs(other, 1, restored=checkpoint, allows_non_restored=True).epoch([None]) == ["[1]"]


def test_max_parallelism_is_that_of_the_state_unless_the_program_chose_one():
    checkpoint = checkpoint_of(summed, [(1, 5)], parallelism=4)
    job = JobInEpochs(summed, 128, restored=checkpoint)
    (vertex,) = [v for v in job.graph.vertices if v.head.uid == "sum"]
    assert (vertex.parallelism, vertex.max_parallelism) == (128, 128), "256 would be the default for 128"


def test_max_parallelism_cannot_change():
    checkpoint = checkpoint_of(summed, [(1, 5)])
    with pytest.raises(StateMismatchError, match=r"had max parallelism 128 .* now has 64 .*set_max_parallelism\(128\)"):
        JobInEpochs(lambda s: summed(s).set_max_parallelism(64), 2, restored=checkpoint)


def test_parallelism_above_the_max_parallelism_of_the_state_is_refused():
    checkpoint = checkpoint_of(lambda s: summed(s).set_max_parallelism(4), [(1, 5)])
    with pytest.raises(StateMismatchError, match="at most that"):
        JobInEpochs(summed, 5, restored=checkpoint)


# --- the same program ------------------------------------------------------------------------------------------------


def test_same_job_continues_exactly_and_a_changed_one_does_not():
    before = JobInEpochs(summed, 2)
    before.epoch([(1, 5)])
    assert restore_job(before.graph, before.checkpoint, False).is_exact
    assert restore_job(JobInEpochs(summed, 2).graph, before.checkpoint, False).is_exact
    assert not restore_job(JobInEpochs(summed, 3).graph, before.checkpoint, False).is_exact


# --- damage ----------------------------------------------------------------------------------------------------------


def test_damaged_state_is_named():
    before = JobInEpochs(summed, 1)
    before.epoch([(1, 5)])
    for path, content in before.folder.files.items():
        if "/v1-s0" in path:
            at = content.index(b"VOID_NAMESPACE")
            before.folder.files[path] = content[:at] + b"#" + content[at + 1 :]
    damage = r"operator '.*': state '.*' in state file memory:/shared/v1-s0.* is damaged"
    with pytest.raises(AssertionError, match=damage):
        JobInEpochs(summed, 1, restored=before.checkpoint).epoch([])


def test_missing_file_is_named():
    before = JobInEpochs(summed, 1)
    before.epoch([(1, 5)])
    for path in [path for path in before.folder.files if "/v1-s0" in path]:
        del before.folder.files[path]
    missing = r"state file memory:/shared/v1-s0.* is missing; .* checkpoint 1, subtask 0"
    with pytest.raises(AssertionError, match=missing):
        JobInEpochs(summed, 1, restored=before.checkpoint).epoch([])


def test_position_that_cannot_be_read_back_is_named():
    before = JobInEpochs(summed, 1)
    before.epoch([(1, 5)])
    unreadable = {before.graph.vertices[0].head.operator_id: b"?"}
    metadata = dataclasses.replace(before.checkpoint.metadata, positions=unreadable)
    with pytest.raises(CorruptStateError, match=r"of operator 'Source: .*' cannot be read back"):
        restore_job(before.graph, FoundCheckpoint(metadata, before.folder, "here"), False)
