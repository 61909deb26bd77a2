"""Count words typed into a socket, every five seconds. Start `nc -lk 1234` in another terminal first."""

from __future__ import annotations

from penstock.common import Time
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
text = env.socket_text_stream("localhost", 1234)
counts = (
    text.flat_map(lambda line: line.split())
    .map(lambda w: (w, 1))
    .key_by(lambda t: t[0])
    .time_window(Time.seconds(5))  # = window(TumblingProcessingTimeWindows.of(...))
    .sum(1)
    .set_parallelism(3)
)
counts.print()
env.execute("Socket Window WordCount")
