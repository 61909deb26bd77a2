from __future__ import annotations

import pickle

import pytest

from penstock.common.typeinfo import Types
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from penstock.metrics import Meter, MetricGroup


def test_tags_with_the_same_id_and_type_are_one_side_output():
    tag = OutputTag("late", Types.STRING())
    assert tag == pickle.loads(pickle.dumps(tag)) and hash(tag) == hash(OutputTag("late", Types.STRING()))
    assert tag != OutputTag("late", Types.INT()) and tag != OutputTag("other", Types.STRING())
    assert OutputTag("late").type_info == Types.PICKLED_BYTE_ARRAY()
    assert OutputTag("late", [Types.INT()]).type_info == Types.ROW([Types.INT()])


def test_tags_need_an_id_and_a_type():
    with pytest.raises(ValueError, match="tag_id must be a non-empty string, got ''"):
        OutputTag("")
    with pytest.raises(TypeError, match="type_info must be a TypeInformation, a list of them or None, got type"):
        OutputTag("late", int)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 bytes"),
        (1024, "1 kb"),
        (1500, "1500 bytes"),
        (3 * 1024**2, "3 mb"),
        (5 * 1024**3, "5 gb"),
        (1024**2 + 1, "1048577 bytes"),
    ],
)
def test_memory_sizes_print_as_in_flink(size, text):
    assert str(MemorySize(bytes_size=size)) == text


def test_memory_sizes_compare_and_convert():
    size = MemorySize.of_mebi_bytes(2048)
    assert (size.get_kibi_bytes(), size.get_mebi_bytes(), size.get_gibi_bytes(), size.get_tebi_bytes()) == (
        2097152,
        2048,
        2,
        0,
    )
    assert MemorySize(1) < MemorySize(2) <= MemorySize(2) and MemorySize(1024) == MemorySize(1 << 10)


def test_slot_sharing_group_has_all_resources_or_none():
    assert SlotSharingGroup.builder("a").build().get_task_heap_memory() is None
    group = SlotSharingGroup.builder("a").set_cpu_cores(1.0).set_task_heap_memory_mb(100).build()
    assert (group.get_name(), group.get_cpu_cores(), str(group.get_task_heap_memory())) == ("a", 1.0, "100 mb")
    assert group.get_managed_memory() == group.get_task_off_heap_memory() == MemorySize(0)
    assert group == pickle.loads(pickle.dumps(group))
    with pytest.raises(ValueError, match=r"slot sharing group 'a': .* needs both CPU cores and task heap memory"):
        SlotSharingGroup.builder("a").set_external_resource("gpu", 1.0).build()
    with pytest.raises(ValueError, match="cpu_cores must be positive, got 0"):
        SlotSharingGroup.builder("a").set_cpu_cores(0)


def test_metrics_are_named_by_their_groups():
    root = MetricGroup()
    counter = root.add_group("shop").counter("orders")
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    root.add_group("country", "de").gauge("open", lambda: 7)
    distribution = root.distribution("sizes")
    for size in (3, 1, 8):
        distribution.update(size)
    values = {name: metric.get_value() for name, metric in root.metrics()}
    assert values == {
        "sizes": {"sum": 12, "count": 3, "min": 1, "max": 8, "mean": 4},
        "shop.orders": 4,
        "country.de.open": 7,
    }
    assert root.add_group("country", "de").variables == {"country": "de"}
    assert root.add_group("shop").counter("orders") is counter


def test_one_name_is_one_kind_of_metric():
    group = MetricGroup().add_group("g")
    group.counter("n")
    with pytest.raises(ValueError, match=r"metric 'g.n' is a Counter already and cannot be a Meter"):
        group.meter("n")


def test_meter_looks_back_over_its_time_span():
    now = [0.0]
    meter = Meter(10, clock=lambda: now[0])
    meter.mark_event(20)
    now[0] = 5
    meter.mark_event(30)
    assert (meter.get_count(), meter.get_rate()) == (50, 5.0)
    now[0] = 10
    assert meter.get_rate() == 3.0
    now[0] = 100
    assert (meter.get_rate(), meter.get_count()) == (0.0, 50)
