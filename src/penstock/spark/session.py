"""The SparkSession that jobs run on."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.spark.deferred_interrupt import deferred_interrupt
from penstock.spark.java import find_java
from penstock.spark.quiet_java import quiet_java

_LOG_CONFIG = Path(__file__).with_name("log4j2.properties")

STAGE_ATTEMPTS = "spark.stage.maxConsecutiveAttempts"

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
    # Chunks are compressed nowhere else; for small ones the codec's set-up costs more than it saves.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}


# Java does little here but pass bytes on: its quick compiler and its simplest collector leave the cores to Python while
# a job is young. On two cores the first 70 epochs took 0.82 times as long; throughput does not clearly change.
_JAVA_OPTIONS = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# For a Java process that is started here. One that spark-submit has started has its master and options already.
_OWN_JAVA_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "penstock",
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
}
_GATEWAY = "PYSPARK_GATEWAY_PORT"


def get_session(config: Configuration, jars: Sequence[str] = ()) -> SparkSession:
    """The running session if there is one, else a new one with these jars and the configuration's `spark.` settings.

    Workers run the Python of the driver unless PYSPARK_PYTHON or `python.executable` says otherwise.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _choose_worker_python(config)
    if _GATEWAY not in os.environ:
        find_java()
    builder = SparkSession.builder
    for key, value in _settings(config, jars).items():
        builder = builder.config(key, value)
    if sys.stderr.isatty():
        print("Starting Spark ...", file=sys.stderr)
    with deferred_interrupt(), quiet_java():
        return builder.getOrCreate()


def _settings(config: Configuration, jars: Sequence[str]) -> dict[str, str]:
    settings = dict(_DEFAULTS)
    if _GATEWAY not in os.environ:
        settings.update(_OWN_JAVA_DEFAULTS)
    settings.update({key: value for key, value in config.to_dict().items() if key.startswith("spark.")})
    if jars:
        settings["spark.jars"] = ",".join([*filter(None, [settings.get("spark.jars")]), *jars])
    return settings


def _choose_worker_python(config: Configuration) -> None:
    chosen = config.get_optional(keys.PYTHON_EXECUTABLE)
    if chosen is not None:
        os.environ["PYSPARK_PYTHON"] = chosen
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def check_working_folder_is_shared(spark: SparkSession, config: Configuration) -> None:
    """On a cluster the executors must reach the folder where state is kept."""
    master = str(spark.sparkContext.master)
    is_one_machine = master.startswith(("local[", "local-cluster")) or master == "local"
    if not is_one_machine and config.get_optional(keys.WORKING_DIR) is None:
        raise ConfigurationError(
            f"{keys.WORKING_DIR.key} is not set, but the job runs on {master}: set it to a folder that the driver and "
            f"all executors reach under the same path"
        )
