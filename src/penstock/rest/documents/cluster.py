"""What the REST API reports about this process: its jobs, its settings, where its tasks run."""

from __future__ import annotations

import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from penstock.common import config_keys as keys
from penstock.jobmaster.dispatcher import Dispatcher
from penstock.rest.documents.by_path import OVERVIEW
from penstock.rest.documents.jobs import overview

_ENDED = ("FINISHED", "CANCELED", "FAILED")


def penstock_version() -> str | None:
    try:
        return version("penstock")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return None


def all_overviews(dispatcher: Dispatcher) -> list[dict[str, Any]]:
    """The entries of running jobs, then of ended ones, newest first."""
    running = [overview(job) for job in dispatcher.running()]
    ended = [job.documents[OVERVIEW] for job in dispatcher.ended()]
    # A job may end between the two questions: it is listed once.
    by_id = {entry["jid"]: entry for entry in running + ended}
    return sorted(by_id.values(), key=lambda entry: (entry["end-time"] >= 0, -entry["start-time"]))


def jobs_overview(dispatcher: Dispatcher) -> dict[str, Any]:
    return {"jobs": all_overviews(dispatcher)}


def jobs(dispatcher: Dispatcher) -> dict[str, Any]:
    return {"jobs": [{"id": entry["jid"], "status": entry["state"]} for entry in all_overviews(dispatcher)]}


def cluster_overview(dispatcher: Dispatcher) -> dict[str, Any]:
    states = [entry["state"] for entry in all_overviews(dispatcher)]
    hosts = dispatcher.hosts()
    return {
        "taskmanagers": None if hosts is None else len(hosts),
        "slots-total": None if hosts is None else sum(host["slotsNumber"] for host in hosts),
        "slots-available": None if hosts is None else sum(host["freeSlots"] for host in hosts),
        "jobs-running": sum(state not in _ENDED for state in states),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": penstock_version(),
        "flink-commit": None,
    }


def web_config(dispatcher: Dispatcher, takes_programs: bool) -> dict[str, Any]:
    here = time.localtime()
    return {
        "refresh-interval": dispatcher.config.get(keys.WEB_REFRESH_INTERVAL),
        "timezone-name": here.tm_zone,
        "timezone-offset": here.tm_gmtoff * 1000,
        "flink-version": penstock_version(),
        "flink-revision": None,
        "features": {
            "web-submit": takes_programs,
            "web-cancel": dispatcher.config.get(keys.WEB_CANCEL),
            "web-rescale": False,
            "web-history": False,
        },
    }
