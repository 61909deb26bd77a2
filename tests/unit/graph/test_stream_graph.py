from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.graph.stream_graph import default_max_parallelism


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def operator_ids(env: StreamExecutionEnvironment) -> dict[str, str]:
    return {node.name: node.operator_id for node in env.get_stream_graph().nodes.values()}


def test_job_without_operators_is_refused(env):
    with pytest.raises(InvalidProgramError, match=r"the job has no operators; define a source and a sink"):
        env.get_stream_graph()


def test_source_alone_is_no_job(env):
    env.from_sequence(1, 3)
    with pytest.raises(InvalidProgramError, match="the job has no operators"):
        env.get_execution_plan()


def test_forward_between_different_parallelisms_is_refused(env):
    env.from_sequence(1, 3).forward().map(str).name("text").set_parallelism(2)
    with pytest.raises(
        InvalidProgramError,
        match=r"forward\(\) from 'Source: Sequence Source' \(parallelism 1\) to 'text' \(parallelism 2\): forward "
        r"needs the same parallelism on both sides; use rebalance\(\) or rescale\(\)",
    ):
        env.get_stream_graph()


def test_uid_of_two_operators_is_refused(env):
    env.from_sequence(1, 3).map(str).name("a").uid("same").map(str).name("b").uid("same")
    with pytest.raises(
        InvalidProgramError, match=r"uid 'same' is used by two operators, 'a' and 'b'; a uid must be unique"
    ):
        env.get_stream_graph()


def test_parallelism_above_the_max_parallelism_is_refused(env):
    env.from_sequence(1, 3).map(str).name("a").set_max_parallelism(2).set_parallelism(3)
    with pytest.raises(InvalidProgramError, match=r"operator 'a' has parallelism 3, above its max parallelism 2"):
        env.get_stream_graph()


def test_parallelism_above_the_environments_max_parallelism_is_refused(env):
    env.set_max_parallelism(4)
    env.from_sequence(1, 3).map(str).name("a").set_parallelism(5)
    with pytest.raises(InvalidProgramError, match=r"operator 'a' has parallelism 5, above its max parallelism 4"):
        env.get_stream_graph()


@pytest.mark.parametrize("wrong", [0, -1, 32769])
def test_max_parallelism_out_of_bounds_is_refused_at_the_call(env, wrong):
    stream = env.from_sequence(1, 3).map(str).name("a")
    with pytest.raises(
        InvalidProgramError, match=rf"operator 'a': max parallelism must be between 1 and 32768, got {wrong}"
    ):
        stream.set_max_parallelism(wrong)


@pytest.mark.parametrize("wrong", [0, -3, 1.5, "2", True, None])
def test_parallelism_that_is_no_positive_whole_number_is_refused_at_the_call(env, wrong):
    stream = env.from_sequence(1, 3).map(str).name("a")
    with pytest.raises(InvalidProgramError, match=r"a: the parallelism must be a whole number of at least 1, got "):
        stream.set_parallelism(wrong)


def test_collection_source_cannot_be_parallel(env):
    with pytest.raises(InvalidProgramError, match="'Source: Collection Source' cannot run in parallel"):
        env.from_collection([1]).set_parallelism(2)


def test_setting_of_an_operator_behind_an_exchange_is_refused(env):
    with pytest.raises(InvalidProgramError, match=r"name\(\) applies to an operator, but here it follows a rebalance"):
        env.from_sequence(1, 3).rebalance().name("a")


def test_operator_with_a_uid_keeps_its_id_when_the_program_changes(env):
    env.from_sequence(1, 3).map(str).name("kept").uid("kept")
    changed = StreamExecutionEnvironment.get_execution_environment()
    changed.from_sequence(1, 3).map(str).name("new").filter(bool).name("new 2").map(str).name("kept").uid("kept")
    assert operator_ids(env)["kept"] == operator_ids(changed)["kept"]


def test_operator_id_of_a_uid_never_changes(env):
    """Recorded: checkpoints of older versions find their operators by it."""
    env.from_sequence(1, 3).map(str).name("a").uid("word-count")
    assert operator_ids(env)["a"] == RECORDED_ID_OF_WORD_COUNT


RECORDED_ID_OF_WORD_COUNT = "0421c7f3257fdc81c4fb6bd6373c325e"


def test_operator_without_a_uid_has_the_same_id_in_the_same_program():
    def ids() -> dict[str, str]:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_sequence(1, 3).map(str).name("a").key_by(len).reduce(max).name("b").print()
        return operator_ids(env)

    assert ids() == ids()
    assert len(set(ids().values())) == len(ids())


def test_uid_hash_is_taken_as_it_is(env):
    env.from_sequence(1, 3).map(str).name("a").set_uid_hash("0" * 31 + "7")
    assert operator_ids(env)["a"] == "0" * 31 + "7"


def test_executing_clears_the_program_but_planning_does_not(env):
    env.from_sequence(1, 3).map(str)
    env.get_stream_graph(clear_transformations=True)
    with pytest.raises(InvalidProgramError, match="the job has no operators"):
        env.get_stream_graph()


@pytest.mark.parametrize(("parallelism", "expected"), [(1, 128), (85, 128), (86, 256), (1000, 2048), (32768, 32768)])
def test_default_max_parallelism_is_flinks(parallelism, expected):
    assert default_max_parallelism(parallelism) == expected


@given(st.integers(1, 32768))
def test_default_max_parallelism_is_never_below_the_parallelism(parallelism):
    assert parallelism <= default_max_parallelism(parallelism) <= 32768


@pytest.mark.parametrize("function", [str, int, len, str.upper])
def test_classes_and_builtins_are_functions_too(env, function):
    env.from_collection(["1"]).map(function)
    assert [node.name for node in env.get_stream_graph().nodes.values()] == ["Source: Collection Source", "Map"]


def test_class_of_a_function_instead_of_an_instance_is_refused(env):
    class Upper(MapFunction):
        def map(self, value):
            return value.upper()

    with pytest.raises(TypeError, match=r"map needs an instance, got the class Upper; write Upper\(\)"):
        env.from_collection(["a"]).map(Upper)


def test_value_that_cannot_be_called_is_refused(env):
    with pytest.raises(TypeError, match="map needs a function or a MapFunction, got 7 of type int"):
        env.from_collection(["a"]).map(7)


def test_every_operator_needs_a_uid_where_none_are_generated(env):
    env.get_config().disable_auto_generated_uids()
    stream = env.from_collection(["a"]).uid("words").map(str.upper)
    stream.print().uid("shown")
    with pytest.raises(InvalidProgramError, match=r"operator 'Map' has no uid, and pipeline.auto-generate-uids"):
        env.get_stream_graph()
    stream.uid("upper")
    assert len(operator_ids(env)) == 3


def test_pythons_own_switch_for_chains_works_as_well():
    settings = Configuration.from_dict({"python.operator-chaining.enabled": "false"})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.from_collection(["a"]).map(str.upper).print()
    assert not env.get_stream_graph().is_chaining_enabled
