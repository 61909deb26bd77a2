"""The whole way from program to execution graph for one job that everybody knows."""

from __future__ import annotations

import json

import pytest

from penstock.common import Time
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState
from penstock.graph.job_graph import DRIVER_STAGE, build_job_graph


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    (
        env.socket_text_stream("localhost", 1234)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .time_window(Time.seconds(5))
        .sum(1)
        .set_parallelism(3)
        .print()
    )
    return env


@pytest.fixture
def job_graph(env):
    return build_job_graph(env.get_stream_graph(job_name="Socket Window WordCount"))


def test_plan_lists_five_operators_with_their_exchanges(env):
    plan = json.loads(env.get_execution_plan())
    assert list(plan) == ["nodes"]
    source, flat_map, map_, window, sink = plan["nodes"]
    assert source == {
        "id": 1,
        "type": "Source: Socket Stream",
        "pact": "Data Source",
        "contents": "Source: Socket Stream",
        "parallelism": 1,
        "slot_sharing_group": "default",
        "chaining_strategy": source["chaining_strategy"],
    }
    assert [node["pact"] for node in plan["nodes"]] == ["Data Source", "Operator", "Operator", "Operator", "Data Sink"]
    assert [node["parallelism"] for node in plan["nodes"]] == [1, 1, 1, 3, 1]
    assert "predecessors" not in source
    assert flat_map["predecessors"] == [{"id": source["id"], "ship_strategy": "FORWARD", "side": "second"}]
    assert map_["predecessors"] == [{"id": flat_map["id"], "ship_strategy": "FORWARD", "side": "second"}]
    assert window["predecessors"] == [{"id": map_["id"], "ship_strategy": "HASH", "side": "second"}]
    assert sink["predecessors"] == [{"id": window["id"], "ship_strategy": "REBALANCE", "side": "second"}]
    assert [node["type"] for node in plan["nodes"]] == [
        "Source: Socket Stream",
        "Flat Map",
        "Map",
        "TumblingProcessingTimeWindows",
        "Sink: Print to Std. Out",
    ]
    assert window["contents"].startswith("Window(TumblingProcessingTimeWindows(")
    assert "SumAggregator" in window["contents"]


def test_ids_are_handed_out_in_the_order_of_the_program(env):
    """key_by takes an id too, though it is no operator: as in Flink's plans."""
    assert [node["id"] for node in json.loads(env.get_execution_plan())["nodes"]] == [1, 2, 3, 5, 6]


def test_plan_does_not_use_the_program_up(env):
    assert env.get_execution_plan() == env.get_execution_plan()


def test_chains_are_source_to_map_then_window_then_sink(job_graph):
    assert job_graph.chains == [[1, 2, 3], [5], [6]]
    assert [vertex.name for vertex in job_graph.vertices] == [
        "Source: Socket Stream -> Flat Map -> Map",
        "TumblingProcessingTimeWindows",
        "Sink: Print to Std. Out",
    ]
    assert [vertex.parallelism for vertex in job_graph.vertices] == [1, 3, 1]


def test_edges_join_the_chains(job_graph):
    shown = [(e.source_vertex, e.target_vertex, e.source_node, e.partitioner.ship_strategy) for e in job_graph.edges]
    assert shown == [(0, 1, 3, "HASH"), (1, 2, 5, "REBALANCE")]


def test_print_needs_no_stage_of_its_own(job_graph):
    assert [vertex.stage for vertex in job_graph.vertices] == [0, 1, DRIVER_STAGE]
    assert [vertex.stage for vertex in job_graph.vertices] == [0, 1, DRIVER_STAGE]


def test_execution_graph_has_one_vertex_for_each_subtask(job_graph):
    graph = ExecutionGraph(job_graph)
    assert [len(each.subtasks) for each in graph.job_vertices] == [1, 3, 1]
    assert [vertex.name for vertex in graph.vertices()] == [
        "Source: Socket Stream -> Flat Map -> Map (1/1)",
        "TumblingProcessingTimeWindows (1/3)",
        "TumblingProcessingTimeWindows (2/3)",
        "TumblingProcessingTimeWindows (3/3)",
        "Sink: Print to Std. Out (1/1)",
    ]
    assert {vertex.state for vertex in graph.vertices()} == {ExecutionState.CREATED}


def test_job_graph_knows_the_channels(job_graph):
    source, window, sink = job_graph.vertices
    assert job_graph.channels_into(source.id, 0) == []
    assert [upstream for _, upstream in job_graph.channels_into(window.id, 2)] == [0]
    assert [upstream for _, upstream in job_graph.channels_into(sink.id, 0)] == [0, 1, 2]


def test_vertex_ids_are_32_hex_digits_and_differ(job_graph):
    ids = [vertex.vertex_id for vertex in job_graph.vertices]
    assert len(set(ids)) == 3
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in ids)
