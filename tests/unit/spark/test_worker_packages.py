from __future__ import annotations

import os
import subprocess
import sys

import pyspark
import pytest

from penstock.spark.worker_packages import JOB_BRINGS_PACKAGES, context_for_workers

PYSPARK_LOADS_NUMPY = pyspark.__version__.startswith("4.1.")
"""As soon as it is imported, in Spark's own Python processes, too. Later versions wait until they need it."""

LOAD = """
import os, sys
import penstock.spark.worker_daemon
from penstock.spark.worker_packages import load_packages
load_packages()
print(len(os.listdir("/proc/self/task")), "pyspark.worker" in sys.modules, "numpy" in sys.modules)
"""


# Spark gives its Python processes this variable, so that NumPy starts no threads for linear algebra.
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads by /proc")
@pytest.mark.parametrize(
    ("added", "has_numpy"), [({}, True), ({JOB_BRINGS_PACKAGES: "1"}, PYSPARK_LOADS_NUMPY)], ids=["plain", "packages"]
)
def test_workers_are_forked_from_a_process_without_threads_that_leaves_packages_to_a_job_that_brings_some(
    added, has_numpy
):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **added}
    ran = subprocess.run([sys.executable, "-c", LOAD], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert ran.stdout.strip() == f"1 True {has_numpy}"


class _Context:
    def __init__(self) -> None:
        self.environment = {"PYTHONHASHSEED": "0"}
        self.shared = object()


def test_only_jobs_that_bring_packages_have_an_environment_of_their_own():
    context = _Context()
    assert context_for_workers(context, False) is context
    own = context_for_workers(context, True)
    assert own.environment == {"PYTHONHASHSEED": "0", JOB_BRINGS_PACKAGES: "1"}
    assert own.shared is context.shared
    assert context.environment == {"PYTHONHASHSEED": "0"}
