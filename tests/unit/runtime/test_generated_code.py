"""The code that people read is the code that runs."""

from __future__ import annotations

from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.runtime.chain_compiler import FusedOperator
from penstock.runtime.generated_code import GeneratedCode, sources_of
from penstock.runtime.operator_chain import OperatorChain
from penstock.runtime.operators.base import TaskInfo


class MustNotOpen(MapFunction):
    def open(self, runtime_context):
        raise AssertionError("opened")

    def map(self, value):
        return value


def two_chains() -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1, 2]).map(MustNotOpen()).filter(lambda x: x > 1).name("Large")
    numbers.rebalance().map(lambda x: -x).flat_map(lambda x: [x]).name("Listed").print()
    return build_job_graph(env.get_stream_graph())


def test_every_chain_of_every_vertex_is_listed_with_its_operators():
    listed = [(code.vertex, code.title) for code in sources_of(two_chains())]
    assert listed[0] == ("Source: Collection Source -> Map -> Large", "penstock chain Map -> Large")
    titles = {title.removesuffix(" with timestamps") for _, title in listed}
    assert titles == {"penstock chain Map -> Large", "penstock chain Map -> Listed"}


def test_listed_source_is_what_the_operator_runs():
    graph = two_chains()
    vertex = graph.vertices[1]
    task = TaskInfo("", "job", vertex.name, 0, 1, 128)
    chain = OperatorChain(graph, vertex, task, lambda: 0, lambda: (0, 1), [], {})
    fused = next(each for each in chain.operators if isinstance(each, FusedOperator))
    assert {code.source for code in sources_of(graph) if code.vertex == vertex.name} >= {
        source.text for source in fused.generated_sources()
    }


def test_name_of_several_lines_stays_a_comment():
    compile(GeneratedCode("one\ntwo", "three", "x = 1\n").as_text(), "shown", "exec")
