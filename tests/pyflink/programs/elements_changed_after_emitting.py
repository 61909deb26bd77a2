"""Functions that change what they have emitted, keep or were given: nobody else sees it."""

from pyflink.common import Types
from pyflink.datastream import (
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

ANY = Types.PICKLED_BYTE_ARRAY()
SIDE = OutputTag("side", ANY)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def elements():
    return env.from_collection([["a", 1, []], ["b", 2, []], ["a", 3, []], ["a", 4, []]])


def show(title, stream):
    with stream.map(repr, Types.STRING()).execute_and_collect() as collected:
        print(title, sorted(collected))


class RunningList(KeyedProcessFunction):
    def open(self, runtime_context):
        self.numbers = runtime_context.get_state(ValueStateDescriptor("numbers", ANY))

    def process_element(self, value, ctx):
        numbers = self.numbers.value() or []
        numbers.append(value[1])
        self.numbers.update(numbers)
        yield numbers


class Kept(KeyedProcessFunction):
    def open(self, runtime_context):
        self.elements = runtime_context.get_list_state(ListStateDescriptor("elements", ANY))

    def process_element(self, value, ctx):
        self.elements.add(value)
        yield value
        yield [list(element) for element in self.elements.get()]


class OneBuffer(MapFunction):
    def __init__(self):
        self.buffer = []

    def map(self, value):
        self.buffer.append(value[1])
        return self.buffer


class Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        value[2].append("again")
        yield value
        value[2].append("spoiled")


class Touch(MapFunction):
    def map(self, value):
        value[2].append("touched")
        return value


class Side(ProcessFunction):
    def process_element(self, value, ctx):
        value[2].append("side")
        yield SIDE, value
        value[2].append("main")
        yield value


def add_in_place(one, other):
    one[1] += other[1]
    return one


show("state that is emitted", elements().key_by(lambda e: e[0]).process(RunningList()))
show("elements that are kept and emitted", elements().key_by(lambda e: e[0]).process(Kept()))
show("reduce in place", elements().key_by(lambda e: e[0]).reduce(add_in_place))
show("one buffer", elements().map(OneBuffer()))
show("an element twice", elements().flat_map(Twice()))
source = elements()
show("two branches", source.map(Touch()).union(source.map(Touch())))
main = elements().process(Side())
show("side output", main.union(main.get_side_output(SIDE)))
