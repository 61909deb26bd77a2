"""What it costs to watch a job: CPU time of a process with dashboard and all metrics on, against the same without.

`python -m benchmarks.observed --records 8000000 --repeat 5`

The watched job emits latency markers ten times a second. Every three seconds, as often as the dashboard asks, all its
metrics are read in Prometheus' format, and the documents are fetched that a browser needs to show the job. Runs take
turns, each in a process of its own. CPU time counts, and paces the questions: it does not depend on what else the
machine does. It holds that of the server, which is a part of the job's process, and of who asks, which is not in real
life; but not the loading of either, about 0.1 s once in the life of a process: a small job is watched before. Markers
are paced by the clock: on a machine that gives a process half of its time they weigh twice as much.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

_LOOKED_AT_EVERY_S = 3
_FEW_RECORDS = 300_000
_ON = {"metrics.latency.interval": "100 ms"}


def run_job(records: int, is_watched: bool) -> dict[str, float]:
    """One run in this process."""
    while _watch(_started(_FEW_RECORDS, _ON)) == 0:
        continue  # It was over before the first question.
    began_s = time.process_time()
    client = _started(records, _ON if is_watched else {})
    looks = _watch(client) if is_watched else 0
    client.get_job_execution_result().result()
    return {"cpu": time.process_time() - began_s, "looks": looks}


def _started(records: int, more: dict[str, str]) -> Any:
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment

    settings = {"execution.target": "inline", "execution.checkpointing.interval": "1 s", **more}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    pairs = env.from_sequence(1, records).map(lambda number: (number % 1000, 1)).key_by(lambda pair: pair[0])
    pairs.reduce(lambda one, other: (one[0], one[1] + other[1])).filter(lambda pair: pair[1] < 0).print()
    return env.execute_async("observed")


def _watch(client: Any) -> int:
    """Ask as a browser and Prometheus do, until the job has ended; how often that was."""
    from penstock.rest import sockets
    from penstock.rest.client import Address, RestClient

    job_id, looks, done = str(client.get_job_id()), 0, client.get_job_execution_result()
    path = sockets.socket_of(job_id)
    assert path is not None
    rest = RestClient(Address(path))
    pause = threading.Event()
    while not done.done():
        for each in ("", "/epochs", "/checkpoints", "/metrics", "/progress", "/log"):
            rest.get(f"/jobs/{job_id}{each}")
        rest.open("GET", "/metrics").read()
        looks += 1
        next_s = time.process_time() + _LOOKED_AT_EVERY_S
        while time.process_time() < next_s and not done.done():
            pause.wait(0.5)
    return looks


def _in_a_process(records: int, is_watched: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.observed", "--records", str(records), "--once"]
    done = subprocess.run(
        [*command, *(["--watched"] if is_watched else [])],
        env={**os.environ, "PENSTOCK_NO_WEB": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--once", action="store_true", help="One run in this process, told as JSON.")
    parser.add_argument("--watched", action="store_true")
    given = parser.parse_args()
    if given.once:
        print(json.dumps(run_job(given.records, given.watched)))
        return
    shares = []
    for turn in range(given.repeat):
        off, on = (_in_a_process(given.records, is_watched) for is_watched in (False, True))
        shares.append(off["cpu"] / on["cpu"])
        print(
            f"turn {turn + 1}: {off['cpu']:.2f} s unwatched, {on['cpu']:.2f} s watched ({on['looks']:.0f} looks): "
            f"{shares[-1]:.1%} of the throughput",
            flush=True,
        )
    print(f"median: {statistics.median(shares):.1%}")


if __name__ == "__main__":
    main()
