"""Kills jobs and servers with SIGKILL while records flow, and compares what was written with what had to be.

The tests do it a few times; for many times: python tests/connectors/crashes.py --help
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import crashing_programs as programs
from servers import KafkaServer, PostgresServer

PROGRAM = Path(programs.__file__)
PATIENCE_S = 600


@dataclass
class CrashingJob:
    """A job that is started again from its newest checkpoint whenever it is gone."""

    name: str
    target: str
    folder: Path
    options: dict[str, Any]
    random: random.Random
    process: subprocess.Popen[bytes] | None = None
    kills: Counter[str] = field(default_factory=Counter)
    lives: int = 0

    def start(self) -> None:
        options = {"target": self.target, "checkpoints": self.folder / "checkpoints", **self.options}
        newest = self.newest_checkpoint()
        if newest is not None:
            options["recover"] = newest.parent
        flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        self.lives += 1
        with (self.folder / "log").open("ab") as log:
            log.write(f"--- life {self.lives}, from {newest}\n".encode())
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), self.name, *flags], stdout=log, stderr=log, start_new_session=True
            )

    def newest_checkpoint(self) -> Path | None:
        """The metadata of the newest complete checkpoint of all lives."""
        found = self.folder.glob("checkpoints/*/chk-*/_metadata")
        times = {path: time_of for path in found if (time_of := _written_ns(path)) is not None}
        return max(times, key=lambda path: times[path], default=None)

    def kill(self) -> None:
        """Kill the driver; what it has started must notice by itself."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.kills["driver"] += 1

    def wait_for_checkpoint(self) -> None:
        """Until there is a checkpoint that was not there before, or the job has ended."""
        before = self.newest_checkpoint()
        self._wait(lambda: self.has_ended() or self.newest_checkpoint() != before, "a checkpoint")

    def has_ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def wait_for_end(self) -> None:
        self._wait(self.has_ended, "the end of the job")
        assert self.process is not None and self.process.returncode == 0, f"the job failed: {self._end_of_log()}"

    def clean_up(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):  # It has ended, and so have all it started.
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, f"waited {PATIENCE_S} s for {what}: {self._end_of_log()}"
            time.sleep(0.01)

    def _end_of_log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]


def _written_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # Old checkpoints are removed meanwhile.
        return None


def crash(job: CrashingJob, crashes: int, kill_server: Callable[[], None] | None = None, server_kills: int = 0) -> None:
    """Run the job to its end, with so many kills of the driver, and of the server in between."""
    planned = ["driver"] * crashes + ["server"] * server_kills
    job.random.shuffle(planned)
    job.start()
    for victim in planned:
        # Some die while they recover, most while they work: at a random moment of an epoch or a checkpoint.
        if job.random.random() < 0.8:
            job.wait_for_checkpoint()
        time.sleep(job.random.uniform(0, 0.5))
        if job.has_ended():
            break
        if victim == "driver":
            job.kill()
            job.start()
        else:
            assert kill_server is not None
            kill_server()
            job.kills["server"] += 1
    job.wait_for_end()


def run_kafka(
    kafka: KafkaServer, folder: Path, target: str, crashes: int, server_kills: int, records: int, seed: int
) -> CrashingJob:
    """Fails unless the output topic holds every window once; returns the job, for its figures."""
    source, output = kafka.topics.new(programs.PARTITIONS), kafka.topics.new(programs.PARTITIONS)
    for partition in range(programs.PARTITIONS):
        elements = [programs.element_of(partition, number) for number in range(records)]
        times = {f"{key} {value}": timestamp for key, value, timestamp in elements}
        kafka.topics.fill(source, list(times), partition, timestamp_of=times.__getitem__)
    options = {"servers": kafka.bootstrap_servers, "input": source, "output": output, "records": records}
    job = CrashingJob("kafka", target, folder, {**options, "epoch_records": 100}, random.Random(seed))

    def kill_broker() -> None:
        kafka.kill()
        kafka.start()

    try:
        crash(job, crashes, kill_broker, server_kills)
    finally:
        job.clean_up()
    check(kafka.topics.values(output), programs.expected_windows(records))
    assert kafka.topics.open_transactions(output) == []
    return job


def run_postgres(
    postgres: PostgresServer, folder: Path, target: str, crashes: int, server_kills: int, records: int, seed: int
) -> CrashingJob:
    """Fails unless the table holds every row once and no prepared transaction is left."""
    table = f"crashes_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"create table {table} (number bigint, square bigint)")
    options = {"servers": postgres.url, "output": table, "records": records, "epoch_records": 100}
    job = CrashingJob("postgres", target, folder, options, random.Random(seed))

    def kill_server() -> None:
        postgres.kill()
        postgres.start()

    try:
        crash(job, crashes, kill_server, server_kills)
    finally:
        job.clean_up()
    with postgres.connect() as connection:
        rows = connection.execute(f"select * from {table} order by 1").fetchall()
        left = connection.execute("select gid from pg_prepared_xacts").fetchall()
    check(rows, programs.expected_rows(records))
    assert [gid for (gid,) in left if gid.startswith(table)] == []
    return job


def check(found: Iterable[Any], expected: Iterable[Any]) -> None:
    """Raise with what is missing and what is too much."""
    there, wanted = Counter(found), Counter(expected)
    differences = [("missing", wanted - there), ("too much", there - wanted)]
    told = [f"{len(some)} {what}: {sorted(some.items())[:10]}" for what, some in differences if some]
    assert not told, "; ".join(told)


RUNS: dict[str, tuple[type[Any], Callable[..., CrashingJob]]] = {
    "kafka": (KafkaServer, run_kafka),
    "postgres": (PostgresServer, run_postgres),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=sorted(RUNS))
    parser.add_argument("--target", default="inline", choices=["inline", "spark"])
    parser.add_argument("--crashes", type=int, default=20)
    parser.add_argument("--server-kills", type=int, default=3)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    kind, run = RUNS[arguments.job]
    folder = Path(tempfile.mkdtemp(prefix="penstock-crashes-"))
    server = kind(Path(tempfile.mkdtemp(prefix="penstock-server-")))
    server.start()
    started = time.monotonic()
    try:
        job = run(
            server,
            folder,
            arguments.target,
            arguments.crashes,
            arguments.server_kills,
            arguments.records,
            arguments.seed,
        )
    finally:
        server.stop()
    seconds = time.monotonic() - started
    print(f"{arguments.job} on {arguments.target}: {dict(job.kills)} kills in {seconds:.0f} s, every record once")


if __name__ == "__main__":
    main()
