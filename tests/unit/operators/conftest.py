"""Jobs in this process, for the tests of this folder: whole, or epoch by epoch."""

from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import JobInEpochs


@pytest.fixture
def env():
    """An environment whose jobs run in this process."""
    configuration = Configuration().set_string("execution.target", "inline")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def run_epochs():
    """`run_epochs(build, parts, parallelism, rebuilds)`: what comes out in each epoch, and at the end of input."""

    def run(build, parts, parallelism, rebuilds):
        job = JobInEpochs(build, parallelism, rebuilds=rebuilds)
        try:
            outputs = [job.epoch(part, at * 1000) for at, part in enumerate(parts)]
            return [*outputs, job.epoch([], len(parts) * 1000, is_last=True)]
        finally:
            job.close()

    return run
