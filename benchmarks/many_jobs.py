"""Memory of a job manager over many jobs: what it holds after each hundred of them.

`python -m benchmarks.many_jobs --jobs 1000`

One process takes tiny jobs one after the other, as a session cluster does, and runs them without Spark: each has a
keyed state, a checkpoint, printed lines and a line in its log, and its documents are read once. What is left of ended
jobs is bounded (`jobstore.max-capacity`), so the resident set must stay where it is once that many have ended.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from penstock.cluster.job_bundle import bundled
from penstock.cluster.session_cluster import SessionCluster
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.by_path import describe

CAPACITY = 20


@dataclass(frozen=True)
class Held:
    """What the process holds after a number of jobs."""

    jobs: int
    resident_kb: int
    objects: int
    """That the garbage collector knows."""
    threads: int
    descriptors: int


def run_jobs(cluster: SessionCluster, jobs: int, look_every: int) -> Iterator[Held]:
    """Run jobs one after the other; report what is held after each `look_every` of them."""
    for number in range(1, jobs + 1):
        _run_one(cluster, number)
        if number % look_every == 0:
            yield held_after(number)


def held_after(jobs: int) -> Held:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return Held(
        jobs,
        int(status["VmRSS"].split()[0]),
        len(gc.get_objects()),
        int(status["Threads"]),
        len(os.listdir("/proc/self/fd")),
    )


def small_cluster(folder: Path) -> SessionCluster:
    return SessionCluster(Configuration.from_dict({"jobstore.max-capacity": str(CAPACITY)}), folder, target="inline")


def _run_one(cluster: SessionCluster, number: int) -> None:
    def noticed(value: int) -> tuple[int, int]:
        if value == 0:
            logging.getLogger("tiny").warning("job %d", number)
        return value % 7, 1

    config = Configuration.from_dict({"execution.checkpointing.interval": "1 h", "execution.attached": "false"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    pairs = env.from_collection(list(range(20))).map(noticed).key_by(lambda pair: pair[0])
    pairs.reduce(lambda one, other: (one[0], one[1] + other[1])).print()
    graph = build_job_graph(env.get_stream_graph())
    with bundled(graph, config, JobDependencies()) as bundle:
        for blob, content in bundle.blobs.items():
            with cluster.blobs.upload(blob) as upload:
                upload.write(content.read_bytes() if isinstance(content, Path) else content)
                upload.finish()
        job_id = cluster.submit(bundle.submission)
    job = cluster.dispatcher.find(job_id)
    if isinstance(job, RunningJob):
        json.dumps(describe(job))
        job.client.get_job_execution_result().result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--kinds", action="store_true", help="Also tell which kinds of objects have become more.")
    given = parser.parse_args()
    logging.basicConfig(handlers=[logging.NullHandler()], level=logging.INFO)
    before: Counter[str] = Counter()
    out = sys.stdout
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        cluster = small_cluster(Path(folder) / "cluster")
        for held in run_jobs(cluster, given.jobs, given.every):
            print(
                f"{held.jobs} jobs: {held.resident_kb / 1024:.1f} MB, {held.objects} objects, {held.threads} threads, "
                f"{held.descriptors} descriptors",
                file=out,
                flush=True,
            )
            if given.kinds:
                now = Counter(type(each).__name__ for each in gc.get_objects())
                print((now - before).most_common(12), file=out, flush=True)
                before = now


if __name__ == "__main__":
    main()
