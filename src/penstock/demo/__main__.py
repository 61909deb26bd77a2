"""Count words in windows of five seconds over an endless text, stop after three of them, and say what to try next."""

from __future__ import annotations

import sys
import time

from penstock.common import Time
from penstock.common.exceptions import PenstockError
from penstock.datastream import StreamExecutionEnvironment
from penstock.demo.text_server import TextServer

SECONDS_OF_RESULTS = 11
"""After the first window: long enough to show two more."""

NEXT = """
That was, in essence, examples/socket_window_word_count.py on a text that never ends. Now try:

  .venv/bin/penstock run examples/word_count.py                        a job that ends by itself
  .venv/bin/penstock info examples/socket_window_word_count.py         the drawing of its plan
  nc -lk 1234, then in another terminal
  .venv/bin/penstock run examples/socket_window_word_count.py          count the words you type; Ctrl-C ends it
"""


def main() -> int:
    print("Counting the words of an endless text in windows of 5 seconds, for about 15 seconds.")
    print("Each line is (word,count) and appears when its window closes. Starting Spark ...", flush=True)
    try:
        with TextServer() as server:
            _count_words(server.port)
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(NEXT)
    return 0


def _count_words(port: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    counts = (
        env.socket_text_stream("localhost", port)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .time_window(Time.seconds(5))
        .sum(1)
    )
    counts.print()
    with counts.execute_and_collect("Demo word count") as results:
        next(results)  # However long Spark takes to start
        time.sleep(SECONDS_OF_RESULTS)


if __name__ == "__main__":
    sys.exit(main())
