"""Jobs in this process, for the tests of this folder."""

from __future__ import annotations

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment


@pytest.fixture
def env():
    """An environment whose jobs run in this process."""
    configuration = Configuration().set_string("execution.target", "inline")
    return StreamExecutionEnvironment.get_execution_environment(configuration)
