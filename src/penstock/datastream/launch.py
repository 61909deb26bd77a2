"""How a script that builds and executes jobs was started: plainly by Python, or by the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from penstock.common.config_file import load_conf_dir
from penstock.common.job_client import JobClient
from penstock.graph.job_graph import JobGraph
from penstock.graph.stream_graph import StreamGraph


class PlanOnlyExit(BaseException):
    """Ends a script at execute() when only its plan is wanted."""


@dataclass(frozen=True)
class SubmittedJob:
    """A job as it was submitted for execution."""

    job_name: str
    stream_graph: StreamGraph
    job_graph: JobGraph
    plan_json: str


@dataclass
class Launch:
    """What the starter of a script gives to its environments, and learns from them."""

    configuration: dict[str, str] = field(default_factory=dict)
    plan_only: bool = False
    announce: Callable[[str], None] | None = None
    """Receives what a person at a terminal wants to know: the job's id when it is submitted, and its cancellation."""
    on_start: Callable[[JobClient], None] | None = None
    """Called with every job that was started."""
    start: Callable[..., JobClient] | None = None
    """Starts its jobs, instead of what the target names."""
    submitted: list[SubmittedJob] = field(default_factory=list)
    clients: list[JobClient] = field(default_factory=list)
    """The jobs that run; a starter that outlives the script waits for them."""


_current: ContextVar[Launch | None] = ContextVar("penstock_launch", default=None)


@contextmanager
def launching(launch: Launch) -> Iterator[None]:
    """Within, environments start from `launch` and report to it."""
    token = _current.set(launch)
    try:
        yield
    finally:
        _current.reset(token)


def current_launch() -> Launch:
    """The launch of this script; an empty one if Python was started with it directly."""
    return _current.get() or Launch()


def starting_configuration() -> dict[str, str]:
    """What an environment starts from, and code overrides.

    The starter has merged the config file with its own settings; without one it is the file of PENSTOCK_CONF_DIR.
    """
    launch = _current.get()
    return load_conf_dir() if launch is None else launch.configuration
