from __future__ import annotations

import pickle

import pytest

from penstock.common.time import Duration, Time
from penstock.common.typeinfo import Types
from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


DESCRIPTORS = [
    ValueStateDescriptor("s", Types.INT()),
    ListStateDescriptor("s", Types.INT()),
    MapStateDescriptor("s", Types.STRING(), Types.INT()),
    ReducingStateDescriptor("s", Largest(), Types.INT()),
    AggregatingStateDescriptor("s", Count(), Types.INT()),
]


@pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda d: type(d).__name__)
def test_descriptor_survives_pickling_with_name_type_and_time_to_live(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    copy = pickle.loads(pickle.dumps(descriptor))
    assert copy == descriptor and hash(copy) == hash(descriptor)
    assert (copy.get_name(), copy.type_info) == ("s", descriptor.type_info)
    assert copy.ttl_config == descriptor.ttl_config and copy.ttl_config.ttl_ms == 3_600_000


def test_descriptors_are_the_same_state_if_kind_and_name_are():
    assert ValueStateDescriptor("a", Types.INT()) == ValueStateDescriptor("a", Types.STRING())
    assert ValueStateDescriptor("a", Types.INT()) != ValueStateDescriptor("b", Types.INT())
    assert len(set(DESCRIPTORS)) == len(DESCRIPTORS)


def test_types_may_be_left_out():
    assert ValueStateDescriptor("a").type_info == Types.PICKLED_BYTE_ARRAY()
    assert ListStateDescriptor("a").type_info == Types.LIST(Types.PICKLED_BYTE_ARRAY())
    assert MapStateDescriptor("a", Types.STRING()).type_info == Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY())


def test_each_read_of_a_default_value_gets_its_own_copy():
    descriptor = ValueStateDescriptor("a", default_value=[])
    descriptor.get_default_value().append(1)
    assert descriptor.get_default_value() == []


def test_a_callable_can_reduce():
    assert ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT()).get_reduce_function().reduce(1, 2) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ValueStateDescriptor("", Types.INT()), "name must be a non-empty string, got ''"),
        (lambda: ValueStateDescriptor("a", int), "expected a TypeInformation such as .* got <class 'int'>"),
        (lambda: ReducingStateDescriptor("a", 5, Types.INT()), "'a': reduce_function must be .* got int"),
        (lambda: AggregatingStateDescriptor("a", sum, Types.INT()), "'a': agg_function must be an AggregateFunction"),
        (lambda: ValueStateDescriptor("a").enable_time_to_live(Time.hours(1)), "needs a StateTtlConfig, got Time"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_time_to_live_starts_from_flinks_defaults():
    config = StateTtlConfig.new_builder(Time.seconds(5)).build()
    assert config.get_ttl() == Time.seconds(5) and config.is_enabled()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background() and not cleanup.in_full_snapshot()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_periodic_compaction_time() == Duration.of_days(30)


def test_time_to_live_keeps_every_choice():
    config = (
        StateTtlConfig.new_builder(Duration.of_seconds(5))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(7, Duration.of_days(1))
        .disable_cleanup_in_background()
        .set_ttl(Time.seconds(6))
        .build()
    )
    assert config.ttl_ms == 6000
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = config.get_cleanup_strategies()
    assert cleanup.in_full_snapshot() and not cleanup.is_cleanup_in_background()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 10
    assert cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_periodic_compaction_time() == Duration.of_days(1)
    assert pickle.loads(pickle.dumps(config)) == config


def test_without_background_cleanup_there_are_no_default_strategies():
    cleanup = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build().cleanup_strategies
    assert cleanup.get_incremental_cleanup_strategy() is None
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None


def test_disabled_time_to_live_counts_as_none():
    descriptor = ValueStateDescriptor("a")
    disabled = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(disabled)
    assert descriptor.ttl_config is None


def test_time_to_live_must_be_positive():
    with pytest.raises(ValueError, match="ttl must be positive, got 0 ms"):
        StateTtlConfig.new_builder(Time.seconds(0)).build()


def test_map_state_reads_like_a_dict_over_its_methods():
    class Dict(MapState):
        def __init__(self):
            self.data = {}

        def get(self, key):
            return self.data.get(key)

        def put(self, key, value):
            self.data[key] = value

        def put_all(self, dict_value):
            self.data.update(dict_value)

        def remove(self, key):
            self.data.pop(key, None)

        def contains(self, key):
            return key in self.data

        def items(self):
            return self.data.items()

        def keys(self):
            return self.data.keys()

        def values(self):
            return self.data.values()

        def is_empty(self):
            return not self.data

        def clear(self):
            self.data.clear()

    state = Dict()
    state["a"] = 1
    assert (state["a"], state["b"], "a" in state, list(state)) == (1, None, True, ["a"])
    del state["a"]
    assert state.is_empty()
