"""What `penstock run` does for a quick start: Java before all else, and an archive of its classes for the next time."""

from __future__ import annotations

import os
from collections.abc import Mapping

from penstock.common.configuration import Configuration
from penstock.common.exceptions import PenstockError
from penstock.spark import java_process
from penstock.spark.class_archive import make_in_background
from penstock.spark.spark_settings import GATEWAY_PORT, JAVA_OPTIONS, choose_worker_python, settings_of


def start_java(environment: Mapping[str, str], config: Configuration) -> None:
    """Start Java for a program that will run with this environment; if that fails, its job reports why."""
    if GATEWAY_PORT in environment:
        return
    choose_worker_python(config)
    chosen = {name: os.environ[name] for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    try:
        java_process.start_ahead(settings_of(config), {**environment, **chosen})
    except PenstockError:
        return  # The program may do without, with a SparkSession of its own or with another target.


def end_java() -> None:
    """The program is over: end Java if no job has taken it."""
    java_process.end_ahead()


def make_class_archive() -> None:
    """After a job: the next one starts more quickly."""
    if GATEWAY_PORT not in os.environ:
        make_in_background(JAVA_OPTIONS)
