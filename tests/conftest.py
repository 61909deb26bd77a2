"""Fixtures that all tests share: one Spark session, and job environments on both targets."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

# Machines differ in speed: an example that takes long is no failure. CI judges every change by the same examples; new
# ones are looked for wherever else the tests run.
settings.register_profile(
    "penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("penstock")
# The programs that tests start leave nothing in the cache of the user who runs them, and no process that makes it.
os.environ.setdefault("PENSTOCK_NO_CLASS_ARCHIVE", "1")
# They have parallelism 1 where they set none, not as many subtasks as the machine has cores.
os.environ["PENSTOCK_CONF_DIR"] = str(Path(__file__).with_name("conf"))
# Their jobs open no port for a dashboard that nobody looks at, and print no address of one.
os.environ.setdefault("PENSTOCK_NO_WEB", "1")


def _enter_own_temporary_folder() -> None:
    """Each process that runs tests sees only its own jobs, and what its killed programs leave behind goes with it.

    The name is short because sockets are made in it. What pytest keeps for a look at failures stays where it is.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = Path(os.environ["PYTEST_DEBUG_TEMPROOT"], f"t{secrets.token_hex(3)}")
    folder.mkdir()
    folder.chmod(0o1777)  # As the one that it stands for: servers of some tests run as other users.
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Djava.io.tmpdir={folder}"  # Java does not look at TMPDIR.
    atexit.register(_remove_unless_forked, folder, os.getpid())


def _remove_unless_forked(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


_enter_own_temporary_folder()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that take long come first, so that no process waits for another one at the end; then those on Spark.

    Processes that share single tests begin with equal parts of the list, and take from the ends of other parts when
    they are done: so one of them starts Spark, and the others do not.
    """
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("slow", "spark")])


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark session of the whole run; jobs find it as the active session."""
    from penstock.spark.session import get_session

    session = get_session(Configuration.from_dict({"spark.master": "local[2]"}))
    yield session
    session.stop()


class EnvironmentFactory:
    """Makes environments whose jobs run on one target."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __call__(self, parallelism: int = 1, settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
        config = Configuration.from_dict({"execution.target": self.target, **(settings or {})})
        return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)


@pytest.fixture(params=["inline", pytest.param("spark", marks=pytest.mark.spark)])
def run_target(request: pytest.FixtureRequest) -> EnvironmentFactory:
    """`run_target(parallelism, settings)` makes an environment; the test runs once on each target."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return EnvironmentFactory(request.param)


@pytest.fixture
def on_spark(spark: Any) -> EnvironmentFactory:
    """Like `run_target`, for what only other processes can do; mark such a test `spark`."""
    return EnvironmentFactory("spark")
