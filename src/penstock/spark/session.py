"""The SparkContext that jobs run on, and the SparkSession for those who read and write DataFrames."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from py4j import java_gateway
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.common.configuration import Configuration
from penstock.common.cores import cores_of, machine_cores
from penstock.spark.deferred_interrupt import deferred_interrupt
from penstock.spark.java_process import JavaProcess, end_ahead, java_process
from penstock.spark.spark_settings import CORES, GATEWAY_PORT, choose_worker_python, settings_of

_starting = threading.Lock()
_GATEWAY_SECRET = "PYSPARK_GATEWAY_SECRET"
# PySpark loads it, and with it pandas, at its first call into Java.
_LOADED_FOR_CALLS = "pyspark.testing.utils"


def get_context(config: Configuration, jars: Sequence[str] = ()) -> SparkContext:
    """The running context if there is one, else a new one with these jars and the configuration's `spark.` settings.

    A context is all that jobs need. A session on top of it would load Spark SQL, which takes longer than the context.
    Workers run the Python of the driver unless PYSPARK_PYTHON or `python.executable` says otherwise.
    """
    # Jobs may be started by several threads at once: Spark is started by the first of them.
    with _starting, deferred_interrupt():
        active = SparkContext._active_spark_context
        if active is not None:
            end_ahead()
            return active
        choose_worker_python(config)
        quieten_py4j()
        if GATEWAY_PORT in os.environ:
            SparkContext._ensure_initialized()
            settings = settings_of(config, jars, submitted=dict(SparkConf().getAll()))
        else:
            settings = settings_of(config, jars)
            if SparkContext._gateway is None:
                _connect(settings)
        conf = SparkConf()
        for key, value in settings.items():
            conf.set(key, value)
        return SparkContext.getOrCreate(conf)


def quieten_py4j() -> None:
    """A program that logs at INFO does not want a line for each connection to Java, unless it asks for it."""
    log = logging.getLogger("py4j")
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)
    # A call that fails because Java has ended is logged by `logging.info` and raised. Used in this way, logging sets up
    # handlers of its own, and all that is logged afterwards looks different.
    calls = logging.getLogger("py4j.java_gateway.calls")
    calls.setLevel(logging.CRITICAL)
    cast(Any, java_gateway).logging = calls


def running_context(session: SparkSession | None) -> SparkContext | None:
    """The context of a session, or without one the context that runs now, if any does."""
    if session is None:
        return SparkContext._active_spark_context
    return getattr(session, "sparkContext", None)  # One of Spark Connect has none, which is refused elsewhere.


def cores_of_context(context: SparkContext) -> int | None:
    """How many cores of this machine a context uses; None if it is one of a cluster."""
    named = context._conf.get(CORES)
    return int(named) if named else cores_of(str(context.master), machine_cores())


def get_session(config: Configuration, jars: Sequence[str] = ()) -> SparkSession:
    """The running session if there is one, else one on the context of `get_context`."""
    get_context(config, jars)
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _connect(settings: dict[str, str]) -> None:
    if sys.stderr.isatty():
        print("Starting Spark ...", file=sys.stderr)
    java = java_process(settings, os.environ)
    if importlib.util.find_spec(_LOADED_FOR_CALLS) is not None:
        importlib.import_module(_LOADED_FOR_CALLS)  # While Java starts.
    with _gateway_of(java):
        SparkContext._ensure_initialized()
    cast(Any, SparkContext._gateway).proc = java.process


@contextmanager
def _gateway_of(java: JavaProcess) -> Iterator[None]:
    """Within, PySpark finds this Java process; afterwards programs that are started from here do not."""
    port, secret = java.address()
    os.environ[GATEWAY_PORT], os.environ[_GATEWAY_SECRET] = str(port), secret
    try:
        yield
    finally:
        del os.environ[GATEWAY_PORT], os.environ[_GATEWAY_SECRET]
