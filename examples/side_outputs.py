"""One operator, three outputs: numbers to the main one, words and what is neither to side outputs."""

from __future__ import annotations

from penstock.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

WORDS = OutputTag("words")
OTHERS = OutputTag("others")


class Sort(ProcessFunction):
    def process_element(self, value, ctx):
        if isinstance(value, int):
            yield value
        elif isinstance(value, str):
            yield WORDS, value
        else:
            ctx.output(OTHERS, repr(value))  # the same, written as in Java


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
numbers = env.from_collection([1, "one", 2.5, 2, None, "two"]).process(Sort())
numbers.print("number")
numbers.get_side_output(WORDS).print("word")
numbers.get_side_output(OTHERS).print("other")
env.execute("side outputs")
