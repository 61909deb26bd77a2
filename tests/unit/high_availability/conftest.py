"""Lets the tests of this folder import the modules beside them; a ZooKeeper for those that need one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from zookeeper_server import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    pytest.importorskip("kazoo", reason="needs the package kazoo")
    pyspark = pytest.importorskip("pyspark", reason="has the jars of ZooKeeper")
    jars = Path(pyspark.__file__).parent / "jars"
    if shutil.which("java") is None or not list(jars.glob("zookeeper-*.jar")):
        pytest.skip("needs Java, and the jars of ZooKeeper that come with PySpark")
    made = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), jars)
    made.start()
    yield made
    made.stop()
