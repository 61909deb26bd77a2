"""The settings that Penstock starts Spark with. Needs no PySpark, so that Java can be started before that is loaded."""

from __future__ import annotations

import functools
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.cores import cores_of, machine_cores
from penstock.common.local_folders import new_local_folder, new_socket_folder
from penstock.spark.class_archive import archive_option
from penstock.spark.master_names import is_local_master

_LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

STAGE_ATTEMPTS = "spark.stage.maxConsecutiveAttempts"
CORES = "spark.penstock.cores"
"""In sessions that Penstock makes on one machine: how many workers a region has at most. Spark has more slots."""
GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
"""In the environment if another process (spark-submit) has started Java."""

# Settings that make small jobs fast and terminals quiet. A `spark.` key of the configuration wins over each.
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Over TCP every Python task waits about 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # A failed task fails its epoch, and the job's restart strategy decides: state has epochs, not task attempts.
    "spark.task.maxFailures": "1",
    # Nor may Spark repeat a stage whose results went with an executor: some have read them, others might read new ones.
    STAGE_ATTEMPTS: "1",
    # In batch mode: one file for each task that writes, not one for each pair of tasks; at 32 a third of the CPU time.
    "spark.shuffle.sort.bypassMergeThreshold": "1",
    # Chunks are compressed nowhere else; for small ones the codec's set-up costs more than it saves.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}

FEWEST_SLOTS, SLOTS_PER_CORE = 32, 8
"""Of Spark on one machine."""

_QUIET = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()}"
# On one machine Java does little but pass bytes on: its quick compiler and its simplest collector leave the cores to
# Python while a job is young. On two cores the first 70 epochs took 0.82 times as long; throughput does not clearly
# change. On a cluster it is the scheduler of all executors, and runs as Java does.
JAVA_OPTIONS = f"{_QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# For a Java process that is started here. One that spark-submit has started has its master and options already.
_OWN_JAVA_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "penstock",
}
_WORKER_DAEMON = "penstock.spark.worker_daemon"

# On one machine, nobody else needs to reach Spark. By default it listens on the machine's address in the network, and
# trusts anybody who connects.
LOOPBACK = "127.0.0.1"
_LONGEST_FOLDER = 60
_ON_ONE_MACHINE = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.authenticate": "true",  # With a secret that Spark makes.
}


def settings_of(
    config: Configuration, jars: Sequence[str] = (), submitted: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The settings that Spark starts with: our defaults, overridden by the configuration's `spark.` settings.

    :param submitted: The settings that `spark-submit` was given, such as by `--conf`. They override the defaults, too.
    """
    settings = dict(_DEFAULTS)
    given = {key: value for key, value in config.to_dict().items() if key.startswith("spark.")}
    if GATEWAY_PORT not in os.environ:
        settings.update(_OWN_JAVA_DEFAULTS)
        is_here = is_on_one_machine({**settings, **given})
        settings["spark.driver.extraJavaOptions"] = _QUIET
        if is_here:
            files = _files_folder()
            archive = archive_option(JAVA_OPTIONS)
            options = [JAVA_OPTIONS, archive, shlex.quote(f"-Djava.io.tmpdir={files}")]
            settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
            settings["spark.local.dir"] = files
    given.update(_with_room({**settings, **given}))
    if is_on_one_machine({**settings, **given}):
        settings.update(_ON_ONE_MACHINE)
        settings["spark.python.unix.domain.socket.dir"] = _socket_folder()
    if has_own_workers({**settings, **given}):
        settings["spark.python.daemon.module"] = _WORKER_DAEMON
        # A process that has run a job's functions ends with them. The next one is forked with all that it needs.
        settings["spark.python.worker.reuse"] = "false"
    settings.update(submitted or {})
    settings.update(given)
    if jars:
        settings["spark.jars"] = ",".join([*filter(None, [settings.get("spark.jars")]), *jars])
    return settings


def _with_room(settings: dict[str, str]) -> dict[str, str]:
    """On one machine: more slots than cores, so that Spark's own jobs find room beside workers that stay.

    Workers wait most of the time, which costs nothing; there are never more of them in a region than the master names.
    """
    cores = cores_of(settings.get("spark.master", ""), machine_cores())
    if cores is None or CORES in settings:
        return {}
    slots = max(FEWEST_SLOTS, SLOTS_PER_CORE * cores)
    own = {"spark.master": f"local[{slots}]", CORES: str(cores), "spark.default.parallelism": str(cores)}
    return {key: value for key, value in own.items() if key == "spark.master" or key not in settings}


@functools.cache
def _files_folder() -> str:
    """For all that Spark and Java write on one machine. When they are killed, the next process removes it."""
    return str(new_local_folder(Path(tempfile.gettempdir()), "spark-files"))


@functools.cache
def _socket_folder() -> str:
    """Where Java and Python meet. They trust every client, so nobody else may connect; a socket has a short name."""
    return str(new_socket_folder("spark", _LONGEST_FOLDER))


def is_on_one_machine(settings: Mapping[str, str]) -> bool:
    """True if Spark is one Java process, here."""
    return is_local_master(settings.get("spark.master", ""))


def has_own_workers(settings: dict[str, str]) -> bool:
    """True if workers run on this machine, with this Python: then they have this package from their start."""
    return is_on_one_machine(settings) and os.environ.get("PYSPARK_PYTHON") == sys.executable


def choose_worker_python(config: Configuration) -> None:
    chosen = config.get_optional(keys.PYTHON_EXECUTABLE)
    if chosen is not None:
        os.environ["PYSPARK_PYTHON"] = chosen
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
