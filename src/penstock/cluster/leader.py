"""A job manager that takes jobs: its Spark session, its cluster, its REST API."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cluster.high_availability.job_store import JobStore
from penstock.cluster.session_cluster import SessionCluster
from penstock.cluster.submission_routes import submission_routes
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.cores import machine_cores
from penstock.common.exceptions import LeadershipLostError
from penstock.jobmaster.metrics.reporters import Reporters
from penstock.jobmaster.metrics.samples import of_process
from penstock.rest.app import build_app
from penstock.rest.routes.operations import Operations

_log = logging.getLogger(__name__)

_SLOTS_PER_CORE = 8
_FEWEST_SLOTS = 32
_JOBS_END_WITHIN_S = 20
_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 60.0


class Leader:
    """Alone, or for as long as it leads. Jobs run on Spark, or with `execution.target: inline` in this process."""

    def __init__(
        self, config: Configuration, folder: Path, shut_down: Callable[[], None], store: JobStore | None = None
    ) -> None:
        self._spark = None if config.get(keys.TARGET).lower() == "inline" else _session(config)
        self._executors: Any = importlib.import_module("penstock.spark.task_managers") if self._spark else None
        self.cluster = SessionCluster(
            config,
            folder,
            self._spark,
            "spark" if self._spark else "inline",
            self._hosts if self._spark else None,
            store,
        )
        self.app = build_app(
            self.cluster.dispatcher,
            Operations(config.get(keys.REST_STORE_DURATION)),
            shut_down,
            submission_routes(self.cluster),
        )
        self._reporters = Reporters(lambda: of_process(self.cluster.dispatcher))
        self._reporters.start(config)
        self._is_recovering = store is not None
        self._pause_s = _FIRST_PAUSE_S
        self._next_try_s = 0.0
        self._lock = threading.Lock()

    def _hosts(self) -> list[dict[str, Any]]:
        hosts: list[dict[str, Any]] = self._executors.task_managers(self._spark)
        return hosts

    @property
    def is_alive(self) -> bool:
        """False if Spark has ended."""
        return self._spark is None or bool(self._executors.is_alive(self._spark))

    def recover(self) -> None:
        """Continue the jobs of former leaders; those that fail to continue are tried again now and then."""
        with self._lock:
            if not self._is_recovering or time.monotonic() < self._next_try_s:
                return
            self._is_recovering = bool(self.cluster.recover())
            self._next_try_s = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Cancel all jobs."""
        _log.info("%d jobs are cancelled", len(self.cluster.dispatcher.running()))
        self.cluster.close(_JOBS_END_WITHIN_S)
        self._reporters.close()
        self._stop_spark()

    def suspend(self, reason: LeadershipLostError) -> None:
        """Leave all jobs to the next leader."""
        with self._lock:
            self._is_recovering = False
        self.cluster.suspend(reason, _JOBS_END_WITHIN_S)
        self._reporters.close()
        self._stop_spark()

    def _stop_spark(self) -> None:
        if self._spark is not None and self.is_alive:
            self._spark.stop()


def _session(config: Configuration) -> Any:
    """The session that all jobs share. Tasks wait for Python most of the time, so there are more slots than cores."""
    cores = machine_cores()
    slots = config.get_optional(keys.TASK_SLOTS) or max(_FEWEST_SLOTS, _SLOTS_PER_CORE * cores)
    defaults = {
        "spark.master": f"local[{slots}]",
        "spark.penstock.cores": str(cores),
        "spark.scheduler.mode": "FAIR",  # Each job is a pool of its own: none waits behind another.
        "spark.app.name": "penstock job manager",
    }
    settings = Configuration.from_dict({**defaults, **config.to_dict()})
    return importlib.import_module("penstock.spark.session").get_session(settings)
