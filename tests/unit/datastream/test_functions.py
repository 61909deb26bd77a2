from __future__ import annotations

import inspect
import pickle

import pytest

from penstock.common.exceptions import StateAccessError, UnsupportedFeatureError
from penstock.datastream import functions
from penstock.datastream.functions import (
    Function,
    KeyedProcessFunction,
    PassThroughWindowFunction,
    RichFunction,
    RichMapFunction,
    SinkFunction,
    SourceFunction,
    TwoPhaseCommitSinkFunction,
    open_function,
)


class AddOne(RichMapFunction):
    opened_with = None

    def open(self, runtime_context):
        self.opened_with = runtime_context

    def map(self, value):
        return value + 1


def test_rich_function_has_its_context_in_open_even_if_open_is_overridden():
    function, context = AddOne(), object()
    open_function(function, context)
    assert function.opened_with is context
    assert function.get_runtime_context() is context


def test_runtime_context_before_open_is_an_error_that_names_the_function():
    with pytest.raises(StateAccessError, match=r"AddOne: get_runtime_context\(\) was called before .* open\(\)"):
        AddOne().get_runtime_context()


def test_every_rich_name_is_rich_and_keeps_the_plain_interface():
    for name in functions.__all__:
        if name.startswith("Rich") and name != "RichFunction":
            rich, plain = getattr(functions, name), getattr(functions, name.removeprefix("Rich"))
            assert issubclass(rich, RichFunction) and issubclass(rich, plain)
            assert rich.__abstractmethods__ == plain.__abstractmethods__


def test_process_functions_know_their_runtime_context():
    assert issubclass(KeyedProcessFunction, RichFunction)


def test_java_class_names_are_refused_with_what_to_write_instead():
    with pytest.raises(UnsupportedFeatureError, match=r"SinkFunction\('org.example.Sink'\).*invoke\(value, context\)"):
        SinkFunction("org.example.Sink")
    with pytest.raises(UnsupportedFeatureError, match=r"SourceFunction\('org.example.Source'\).*run\(ctx\)"):
        SourceFunction("org.example.Source")


def test_functions_of_users_may_have_constructors_of_their_own():
    class Numbers(SourceFunction):
        def __init__(self, count, *, start=0):
            self.numbers = range(start, count)

        def run(self, ctx):
            for number in self.numbers:
                ctx.collect(number)

        def cancel(self):
            self.numbers = range(0)

    assert Numbers(3, start=1).numbers == range(1, 3)


def test_recovered_transactions_are_committed_and_aborted_as_others_are():
    class Log(TwoPhaseCommitSinkFunction):
        def __init__(self):
            self.calls = []

        def begin_transaction(self):
            return "t"

        def invoke(self, transaction, value, context):
            self.calls.append((transaction, value))

        def pre_commit(self, transaction):
            self.calls.append(("pre_commit", transaction))

        def commit(self, transaction):
            self.calls.append(("commit", transaction))

        def abort(self, transaction):
            self.calls.append(("abort", transaction))

    log = Log()
    log.recover_and_commit("a")
    log.recover_and_abort("b")
    assert log.calls == [("commit", "a"), ("abort", "b")]


def test_pass_through_window_function_emits_its_input():
    assert list(PassThroughWindowFunction().apply("key", None, [1, 2])) == [1, 2]


def test_timeout_of_an_async_call_fails_and_says_what_to_override():
    class Lookup(functions.AsyncFunction):
        async def async_invoke(self, value):
            return [value]

    with pytest.raises(TimeoutError, match=r"Lookup: .* element 7; override timeout\(value\)"):
        Lookup().timeout(7)


def test_abstract_functions_cannot_be_made():
    for name in ("MapFunction", "FilterFunction", "AggregateFunction", "KeyedProcessFunction", "SinkFunction"):
        assert inspect.isabstract(getattr(functions, name)), name


def test_functions_pickle():
    assert pickle.loads(pickle.dumps(AddOne())).map(1) == 2
    assert isinstance(AddOne(), Function)
