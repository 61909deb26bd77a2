"""Spark's Java process. PySpark would start it itself, but only when it is loaded and a job is there.

`penstock run` starts it first of all: it gets ready while Python loads modules and the program builds its job. Whether
it fits is known when the job is there: a program may have changed settings or the environment meanwhile. One that does
not fit is ended, and another one is started.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.local_folders import new_local_folder
from penstock.common.private_folder import open_new
from penstock.common.redaction import is_secret, redacted_text
from penstock.spark.java import find_java
from penstock.spark.quiet_java import filtered_stderr
from penstock.spark.spark_home import spark_home
from penstock.spark.spark_settings import LOOPBACK, is_on_one_machine

_POLL_S = 0.01
_INT = struct.Struct(">i")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


class JavaProcess:
    """A Java process that waits for a SparkContext; it ends with this process."""

    def __init__(self, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
        find_java()
        self._settings = dict(settings)
        self._environment = dict(environment)
        self._folder = new_local_folder(Path(tempfile.gettempdir()), "java")
        self._address_file = self._folder / "address"
        self._is_asked_for = False
        self.process = self._started()
        atexit.register(self._leave)

    def _started(self) -> subprocess.Popen[bytes]:
        stderr = filtered_stderr()
        try:
            return subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,  # Java ends when it closes, with us.
                stderr=stderr,
                env={
                    # Where Spark's web pages listen, if they are turned on, and what it takes for its own address.
                    **({"SPARK_LOCAL_IP": LOOPBACK} if is_on_one_machine(self._settings) else {}),
                    **self._environment,
                    "SPARK_HOME": str(spark_home()),
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address_file),
                },
                preexec_fn=_ignore_interrupts,
            )
        finally:
            os.close(stderr)

    def _command(self) -> list[str]:
        words = [str(spark_home() / "bin" / "spark-submit")]
        secrets = {key: value for key, value in self._settings.items() if _holds_secret(key, value)}
        if secrets:
            words += ["--properties-file", str(self._properties_file(secrets)), "--load-spark-defaults"]
        for key, value in self._settings.items():
            if key not in secrets:
                words += ["--conf", f"{key}={value}"]
        return words + shlex.split(self._environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))

    def _properties_file(self, settings: Mapping[str, str]) -> Path:
        """Everybody on the machine can read a command line, but only this user the folder."""
        file = self._folder / "secrets.properties"
        with open_new(file) as out:
            for key, value in settings.items():
                out.write(f"{_escaped(key)}={_escaped(value)}\n".encode())
        return file

    def fits(self, settings: Mapping[str, str], environment: Mapping[str, str]) -> bool:
        """True if it is what one started now would be."""
        is_same = self._settings == dict(settings) and self._environment == dict(environment)
        return is_same and self.process.poll() is None

    def address(self) -> tuple[int, str]:
        """Wait until Java is ready; its port and the secret for it."""
        self._is_asked_for = True
        while not self._address_file.exists():
            if self.process.poll() is not None:
                raise EnvironmentSetupError(
                    f"Java ended with code {self.process.returncode} before Spark had started; what it said is above. "
                    f"Correct the `spark.` settings of the job, or JAVA_HOME"
                )
            time.sleep(_POLL_S)
        content = self._address_file.read_bytes()
        (port,), (length,) = _INT.unpack_from(content, 0), _INT.unpack_from(content, 4)
        return port, content[8 : 8 + length].decode()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._clean_up()

    def _clean_up(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        """At the end of this process: Java ends by itself, unless it is still waiting to report where it listens."""
        if self._is_asked_for:
            self._clean_up()
        else:
            self.end()


def _holds_secret(key: str, value: str) -> bool:
    """True for settings that must not be on a command line; options of Java itself can be nowhere else."""
    return not key.endswith("JavaOptions") and (is_secret(key) or redacted_text(value) != value)


def _escaped(text: str) -> str:
    """As a name or a value in a file of Java's properties."""
    return re.sub(r"([\\\s:=#!])", lambda found: _ESCAPES.get(found[1], f"\\{found[1]}"), text)


def _ignore_interrupts() -> None:
    """Ctrl-C is for Python, which cancels the job and then ends Java."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_ahead: JavaProcess | None = None


def start_ahead(settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Start Java now for a job that comes later in this process."""
    global _ahead
    end_ahead()
    _ahead = JavaProcess(settings, environment)


def java_process(settings: Mapping[str, str], environment: Mapping[str, str]) -> JavaProcess:
    """The one that was started ahead if it fits, else a new one."""
    global _ahead
    ahead, _ahead = _ahead, None
    if ahead is not None:
        if ahead.fits(settings, environment):
            return ahead
        ahead.end()
    return JavaProcess(settings, environment)


def end_ahead() -> None:
    """Nobody needs the process that was started ahead: the job has another Spark, or there is none."""
    global _ahead
    ahead, _ahead = _ahead, None
    if ahead is not None:
        ahead.end()
