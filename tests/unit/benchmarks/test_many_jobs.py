"""A job manager holds no more after many jobs than after as many as it keeps."""

from __future__ import annotations

import os
from contextlib import redirect_stdout

from benchmarks.many_jobs import CAPACITY, run_jobs, small_cluster


def test_what_is_held_does_not_grow_with_the_jobs_that_have_ended(tmp_path):
    cluster = small_cluster(tmp_path / "cluster")
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        first, then, last = run_jobs(cluster, 3 * CAPACITY, look_every=CAPACITY)
    assert [each.jobs for each in (first, then, last)] == [CAPACITY, 2 * CAPACITY, 3 * CAPACITY]
    assert len(cluster.dispatcher.ended()) == CAPACITY and cluster.dispatcher.running() == []
    assert last.objects - then.objects < CAPACITY * 10, "less than a job leaves in its documents"
    assert last.threads <= first.threads + 2 and last.descriptors <= first.descriptors + 2
    assert [name for name in vars(cluster) if _holds_more_than(vars(cluster)[name], CAPACITY)] == []


def _holds_more_than(value: object, number: int) -> bool:
    return isinstance(value, dict | list | set) and len(value) > number
