"""Count the words that come from a socket, per word, in ValueState; every count is printed.

Runs on Penstock and on PyFlink: `python -m benchmarks.latency_job --port 1234`; see benchmarks/latency.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.flink_api import (
    PACKAGE,
    Configuration,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    Types,
    ValueStateDescriptor,
)

POISON = "poison:"


def fail_once(word: str) -> None:
    """Fail if the file that the word names is there; it is not there any more when the word comes again."""
    dose = Path(word.removeprefix(POISON))
    if dose.exists():
        dose.unlink()
        raise ValueError("this record cannot be counted")


class CountPerKey(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        if value[0].startswith(POISON):
            fail_once(value[0])
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"RESULT {value[0]} {count}"


def lines_of(env: StreamExecutionEnvironment, port: int) -> DataStream:
    if PACKAGE == "penstock":
        return env.socket_text_stream("127.0.0.1", port)
    # PyFlink has no method of its own for Flink's socket source.
    return DataStream(env._j_stream_execution_environment.socketTextStream("127.0.0.1", port))  # type: ignore[call-arg]


def build(env: StreamExecutionEnvironment, port: int) -> DataStream:
    return (
        lines_of(env, port)
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.STRING())
        .process(CountPerKey(), Types.STRING())
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency_job", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallelism", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job")
    parser.add_argument("--spans", metavar="FOLDER", help="write down there when each phase of an epoch ran")
    parser.add_argument("--epochs", metavar="FOLDER", help="write down there when each epoch ran")
    parsed = parser.parse_args()
    config = Configuration()
    for key, value in (pair.split("=", 1) for pair in parsed.config):
        config.set_string(key, value)
    if parsed.spans:
        from benchmarks.epoch_spans import watch_driver

        for key, value in watch_driver(parsed.spans).items():
            config.set_string(key, value)
    if parsed.epochs:
        from benchmarks.epoch_spans import watch_epochs

        watch_epochs(parsed.epochs)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(parsed.parallelism)
    build(env, parsed.port).print()
    env.execute("latency")


if __name__ == "__main__":
    main()
