"""What a resident Spark task runs: a worker of a region, for as long as its driver wants it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.common.local_folders import remove_own_folders
from penstock.runtime.resident_worker import ResidentWorker, WorkerPlace
from penstock.runtime.task_output import captured


def host_worker(places: Iterable[WorkerPlace]) -> Iterator[None]:
    """The task of one partition, which holds one place."""
    for place in list(places):  # Read to the end: PySpark does not use a worker again that has left input behind.
        with as_before():
            worker = ResidentWorker(place)
            with captured(worker.send_output) as output:
                worker.flush_output = output.flush
                worker.run()
                worker.wait_for_guests()
    return iter(())


@contextmanager
def as_before() -> Iterator[None]:
    """Spark may use the process for another task: a job's modules, paths and folders must not remain in it."""
    folder, path, modules = os.getcwd(), list(sys.path), set(sys.modules)
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    # Records come and go by the thousand: with the default of 700 the collector runs for nothing most of the time.
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        remove_own_folders()
        added = [each for each in sys.path if each not in path]
        sys.path[:] = path
        os.chdir(folder)
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if any(file.startswith(os.path.join(each, "")) for each in added):
                del sys.modules[name]
