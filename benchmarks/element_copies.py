"""What copying elements between functions costs: the same job with and without object reuse, in one process.

Two process functions that are called for each element, so that nothing but the copy between them differs:

    python -m benchmarks.element_copies --records 200000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from penstock.common import Configuration, Row
from penstock.datastream import ProcessFunction, StreamExecutionEnvironment

ELEMENTS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda number: number,
    "tuples of numbers and text": lambda number: (number, "text"),
    "lists of two": lambda number: [number, "text"],
    "rows of two": lambda number: Row(number, "text"),
    "dicts of two": lambda number: {"id": number, "name": "text"},
}


class Make(ProcessFunction):
    """Keeps what it emits, so that Penstock cannot tell that a copy would not be noticed."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make
        self.last: Any = None

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last = self._make(value)
        yield self.last


class Drop(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield from ()


def seconds(records: int, make: Callable[[int], Any], reuse: bool) -> float:
    settings = {"execution.target": "inline", "pipeline.object-reuse": str(reuse).lower(), "web.ui.enabled": "false"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.from_sequence(1, records).process(Make(make)).process(Drop()).print()
    begin = time.process_time()
    env.execute("element copies")
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| elements | CPU ns a record, reused | copied | times |\n|---|---|---|---|")
    for name, make in ELEMENTS.items():
        # CPU time, and the best of some rounds: other load only makes a round slower.
        rounds = [[seconds(given.records, make, reuse) for reuse in (True, False)] for _ in range(given.rounds)]
        reused, copied = (min(times) for times in zip(*rounds, strict=True))
        per_record = 1e9 / given.records
        print(f"| {name} | {reused * per_record:.0f} | {copied * per_record:.0f} | {copied / reused:.2f} |")


if __name__ == "__main__":
    main()
