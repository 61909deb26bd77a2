from __future__ import annotations

import pytest

from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.graph.job_graph import DRIVER_STAGE, JobGraph, build_job_graph


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def increment(number):
    return number + 1


def names(env: StreamExecutionEnvironment) -> list[str]:
    return [vertex.name for vertex in job_graph(env).vertices]


def job_graph(env: StreamExecutionEnvironment) -> JobGraph:
    return build_job_graph(env.get_stream_graph())


def test_operators_that_forward_share_a_chain(env):
    env.from_sequence(1, 3).map(increment).name("a").filter(bool).name("b").print().name("out")
    assert names(env) == ["Source: Sequence Source -> a -> b -> Sink: out"]


def test_start_new_chain_cuts_before_the_operator(env):
    env.from_sequence(1, 3).map(increment).name("a").map(increment).name("b").start_new_chain().map(increment).name("c")
    assert names(env) == ["Source: Sequence Source -> a", "b -> c"]


def test_disable_chaining_cuts_on_both_sides(env):
    env.from_sequence(1, 3).map(increment).name("a").disable_chaining().map(increment).name("b")
    assert names(env) == ["Source: Sequence Source", "a", "b"]


def test_sink_may_leave_the_chain(env):
    env.from_sequence(1, 3).map(increment).name("a").print().name("out").disable_chaining()
    assert names(env) == ["Source: Sequence Source -> a", "Sink: out"]


def test_environment_may_switch_chaining_off(env):
    env.disable_operator_chaining()
    env.from_sequence(1, 3).map(increment).name("a").map(increment).name("b")
    assert names(env) == ["Source: Sequence Source", "a", "b"]


def test_other_slot_sharing_group_cuts_the_chain(env):
    env.from_sequence(1, 3).map(increment).name("a").slot_sharing_group("heavy").map(increment).name("b")
    assert names(env) == ["Source: Sequence Source", "a -> b"]


def test_slot_sharing_group_is_handed_down_where_the_inputs_agree(env):
    group = SlotSharingGroup.builder("heavy").build()
    env.from_sequence(1, 3).slot_sharing_group(group).map(increment).name("a")
    assert names(env) == ["Source: Sequence Source -> a"]
    assert {node.slot_sharing_group for node in env.get_stream_graph().nodes.values()} == {"heavy"}


def test_inputs_of_different_slot_sharing_groups_give_the_default_group(env):
    left = env.from_sequence(1, 3).slot_sharing_group("left")
    left.union(env.from_sequence(1, 3).slot_sharing_group("right")).map(increment).name("a")
    groups = {node.name: node.slot_sharing_group for node in env.get_stream_graph().nodes.values()}
    assert groups["a"] == "default"


def test_different_parallelism_cuts_the_chain_and_rebalances(env):
    env.from_sequence(1, 3).map(increment).name("a").set_parallelism(2).map(increment).name("b").set_parallelism(2)
    graph = job_graph(env)
    assert [vertex.name for vertex in graph.vertices] == ["Source: Sequence Source", "a -> b"]
    assert [edge.partitioner.ship_strategy for edge in graph.edges] == ["REBALANCE"]


def test_different_max_parallelism_cuts_the_chain_but_forwards(env):
    env.from_sequence(1, 3).map(increment).name("a").set_max_parallelism(7)
    graph = job_graph(env)
    assert [vertex.name for vertex in graph.vertices] == ["Source: Sequence Source", "a"]
    assert [edge.partitioner.ship_strategy for edge in graph.edges] == ["FORWARD"]


@pytest.mark.parametrize(
    ("exchange", "strategy"),
    [
        (lambda stream: stream.rebalance(), "REBALANCE"),
        (lambda stream: stream.rescale(), "RESCALE"),
        (lambda stream: stream.shuffle(), "SHUFFLE"),
        (lambda stream: stream.broadcast(), "BROADCAST"),
        (lambda stream: stream.global_(), "GLOBAL"),
        (lambda stream: stream.partition_custom(lambda key, n: key % n, lambda value: value), "CUSTOM"),
        (lambda stream: stream.key_by(lambda value: value), "HASH"),
    ],
)
def test_exchange_cuts_the_chain(env, exchange, strategy):
    exchange(env.from_sequence(1, 3)).map(increment).name("a")
    graph = job_graph(env)
    assert [vertex.name for vertex in graph.vertices] == ["Source: Sequence Source", "a"]
    assert [edge.partitioner.ship_strategy for edge in graph.edges] == [strategy]


def test_forward_keeps_the_chain(env):
    env.from_sequence(1, 3).forward().map(increment).name("a")
    assert names(env) == ["Source: Sequence Source -> a"]


def test_last_exchange_before_an_operator_counts(env):
    env.from_sequence(1, 3).rebalance().broadcast().map(increment)
    assert [edge.partitioner.ship_strategy for edge in job_graph(env).edges] == ["BROADCAST"]


def test_operator_behind_a_union_starts_a_chain(env):
    first, second = env.from_sequence(1, 3).name("1"), env.from_sequence(4, 6).name("2")
    first.union(second).map(increment).name("a").map(increment).name("b")
    graph = job_graph(env)
    assert [vertex.name for vertex in graph.vertices] == ["Source: 1", "Source: 2", "a -> b"]
    assert [(e.source_vertex, e.target_vertex, e.input_index) for e in graph.edges] == [(0, 2, 0), (1, 2, 0)]


def test_union_of_unions_is_one_union(env):
    streams = [env.from_sequence(1, 3).name(str(number)) for number in range(4)]
    streams[0].union(streams[1]).union(streams[2].union(streams[3])).map(increment).name("a")
    graph = env.get_stream_graph()
    target = next(node.id for node in graph.nodes.values() if node.name == "a")
    assert [graph.nodes[edge.source].name for edge in graph.in_edges(target)] == [f"Source: {n}" for n in range(4)]


def test_stream_may_be_united_with_itself(env):
    stream = env.from_sequence(1, 3)
    stream.union(stream).map(increment).name("a")
    assert [(edge.source_vertex, edge.target_vertex) for edge in job_graph(env).edges] == [(0, 1), (0, 1)]


def test_side_output_may_be_chained_and_keeps_its_tag(env):
    tag = OutputTag("late")
    main = env.from_sequence(1, 3).map(increment).name("a")
    main.get_side_output(tag).map(increment).name("side")
    main.map(increment).name("main")
    graph = job_graph(env)
    assert [vertex.name for vertex in graph.vertices] == ["Source: Sequence Source -> a -> (side, main)"]
    tags = {edge.target: edge.side_tag for edge in graph.vertices[0].chained_edges}
    by_name = {node.name: tags.get(node.id) for node in graph.vertices[0].nodes}
    assert by_name == {"Source: Sequence Source": None, "a": None, "side": "late", "main": None}


def test_side_output_through_an_exchange_keeps_its_tag(env):
    env.from_sequence(1, 3).map(increment).get_side_output(OutputTag("late")).rebalance().map(increment)
    assert [(e.partitioner.ship_strategy, e.side_tag) for e in job_graph(env).edges] == [("REBALANCE", "late")]


def test_several_readers_of_one_operator_share_its_chain(env):
    stream = env.from_sequence(1, 3).map(increment).name("a")
    stream.map(increment).name("b")
    stream.map(increment).name("c").map(increment).name("d")
    assert names(env) == ["Source: Sequence Source -> a -> (b, c -> d)"]


def test_operators_behind_a_key_may_chain(env):
    env.from_sequence(1, 3).key_by(lambda n: n).reduce(max).name("r").map(increment).name("a")
    assert names(env) == ["Source: Sequence Source", "r -> a"]


def test_diamond_has_one_stage_for_each_step_of_its_longest_path(env):
    source = env.from_sequence(1, 3).name("s")
    short = source.rebalance().map(increment).name("short")
    long = source.rebalance().map(increment).name("long 1").rebalance().map(increment).name("long 2")
    short.union(long).map(increment).name("join")
    stages = {vertex.name: vertex.stage for vertex in job_graph(env).vertices}
    assert stages == {"Source: s": 0, "short": 1, "long 1": 1, "long 2": 2, "join": 3}


def test_vertices_stand_behind_all_that_feed_them(env):
    source = env.from_sequence(1, 3)
    left, right = source.rebalance().map(increment), source.rebalance().map(increment)
    left.union(right).map(increment).rebalance().print()
    graph = job_graph(env)
    assert all(edge.source_vertex < edge.target_vertex for edge in graph.edges)
    assert [vertex.id for vertex in graph.vertices] == list(range(len(graph.vertices)))


def test_print_chained_to_its_operator_runs_with_it(env):
    env.from_sequence(1, 3).rebalance().map(increment).print()
    assert [vertex.stage for vertex in job_graph(env).vertices] == [0, 1]


def test_sinks_of_several_streams_run_in_the_driver(env):
    stream = env.from_sequence(1, 3).set_parallelism(2)
    stream.print()
    stream.print_to_err()
    assert [vertex.stage for vertex in job_graph(env).vertices] == [0, DRIVER_STAGE, DRIVER_STAGE]


def test_very_long_programs_do_not_exhaust_the_stack(env):
    stream = env.from_sequence(1, 3)
    for _ in range(3000):
        stream = stream.map(increment)
    assert len(env.get_stream_graph().nodes) == 3001
