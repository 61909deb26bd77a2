"""Runs ZooKeeper for tests: the one whose classes come with PySpark."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from free_ports import free_port

WITHIN_S = 120


class ZooKeeperServer:
    """A ZooKeeper of its own."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self._folder = folder
        self._jars = jars
        self.port = free_port()
        (folder / "zoo.cfg").write_text(
            f"tickTime=500\ndataDir={folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            f"minSessionTimeout=500\nadmin.enableServer=false\n"
        )

    def start(self) -> None:
        java = ["java", "-Xmx128m", "-cp", f"{self._jars}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*java, str(self._folder / "zoo.cfg")], stdout=log, stderr=log)
        deadline = time.monotonic() + WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError((self._folder / "log").read_text())
            threading.Event().wait(0.05)

    def _answers(self) -> bool:
        """True if it serves: it takes connections before that, and lets them wait."""
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), timeout=5)) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.makefile("rb").read()
        return False

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
