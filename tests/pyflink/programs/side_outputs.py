"""Side outputs of process, keyed process, co-process and window functions."""

from pyflink.common import Types
from pyflink.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.functions import CoProcessFunction

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

TEXT = OutputTag("text", Types.STRING())
PAIRS = OutputTag("pairs", Types.TUPLE([Types.STRING(), Types.INT()]))
UNTYPED = OutputTag("untyped")


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield TEXT, "odd %d" % value
        elif value % 4 == 0:
            yield PAIRS, ("four", value)
        yield UNTYPED, {"value": value}
        yield value


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield TEXT, "%s of %s" % (value, ctx.get_current_key())
        ctx.timer_service().register_event_time_timer(10)

    def on_timer(self, timestamp, ctx):
        yield TEXT, "timer of %s" % ctx.get_current_key()


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield TEXT, "1: %s" % value

    def process_element2(self, value, ctx):
        yield TEXT, "2: %s" % value
        yield value


class Sizes(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield TEXT, "window of %s" % key
        yield len(list(elements))


def show(stream, *tags):
    """What a stream and its side outputs bring, in one job: PyFlink takes tagged values for values if nobody asks."""
    sides = [stream.get_side_output(tag).map(lambda value: "side %s" % (value,), Types.STRING()) for tag in tags]
    main = stream.map(lambda value: "main %s" % (value,), Types.STRING())
    print(sorted(main.union(*sides).execute_and_collect()))


numbers = env.from_collection([1, 2, 3, 4], Types.INT())
show(numbers.process(Split(), Types.INT()), TEXT, PAIRS, UNTYPED)
show(numbers.process(Split(), Types.INT()), OutputTag("text", Types.STRING()))
show(numbers.key_by(lambda number: number % 2).process(Keyed(), Types.INT()), TEXT)
show(numbers.connect(numbers.map(lambda number: -number, Types.INT())).process(Both(), Types.INT()), TEXT)
show(numbers.key_by(lambda number: number % 2).count_window(2).process(Sizes(), Types.INT()), TEXT)
