"""Decides what the next epoch of a region is for. Facts go in, a plan comes out: no clock, no thread, no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from penstock.jobmaster.savepoint_requests import Request, SavepointRequest


class Reading(Enum):
    """What the sources bring into an epoch."""

    NOTHING = auto()
    """Restored state is saved as it is."""
    WHAT_IS_THERE = auto()
    WHAT_WAS_TAKEN = auto()
    """The job stops: only records that were received from outside and will not come again."""
    TO_THE_END = auto()
    """The job drains: the same, and then the end of the input."""


@dataclass(frozen=True)
class EpochPlan:
    """What an epoch is for, before its sources say what they bring."""

    reading: Reading
    is_checkpoint: bool
    """True if it ends with a checkpoint in any case."""
    requests: tuple[Request, ...] = ()
    """The requests that the checkpoint answers."""
    stop: SavepointRequest | None = None
    """The request that ends the job after this epoch, once its savepoint is written."""
    drains_next: SavepointRequest | None = None
    """The request for which the next epoch drains the job. If that fails, the job continues from this one."""

    def ending(self, has_ended_input: bool, ends_safely: bool, hears: bool) -> EpochEnding:
        """The same epoch when its sources have said what they bring.

        `has_ended_input`: nothing more will come. `ends_safely`: there are commits that belong to the last
        checkpoint. `hears`: functions want to be notified of it before they are closed.
        """
        is_last = has_ended_input and self.reading is not Reading.NOTHING
        is_checkpoint = self.is_checkpoint or (is_last and ends_safely)
        # Where the input has ended by itself, there is nothing left to drain.
        waiting = () if self.drains_next is None or not is_last else (self.drains_next,)
        return EpochEnding(is_last, is_checkpoint, is_last and is_checkpoint and hears, (*self.requests, *waiting))


@dataclass(frozen=True)
class EpochEnding:
    is_last: bool
    """True if the tasks are finished."""
    is_checkpoint: bool
    hears_afterwards: bool
    """True if the tasks get a notice of the checkpoint, in a command of its own, before they close."""
    requests: tuple[Request, ...]

    @property
    def savepoint_format(self) -> str | None:
        """None if the checkpoint is not taken for a savepoint."""
        return next((each.format_type for each in self.requests if isinstance(each, SavepointRequest)), None)


def plan_epoch(
    asked: Sequence[Request], *, may_drain: SavepointRequest | None = None, is_saving_first: bool, is_due: bool
) -> EpochPlan:
    """What the next epoch does about the requests in `asked`. Requests that the plan does not name must wait.

    `may_drain`: the request for which the region has taken a checkpoint that it can come back to. `is_saving_first`:
    restored state must be saved before anything else happens. `is_due`: the next checkpoint is due.
    """
    if is_saving_first:
        return EpochPlan(Reading.NOTHING, is_checkpoint=True)
    stop = next((each for each in asked if isinstance(each, SavepointRequest) and each.stops_job), None)
    if stop is None:
        return EpochPlan(Reading.WHAT_IS_THERE, bool(asked) or is_due, tuple(asked))
    if stop.drains and stop is may_drain:
        return EpochPlan(Reading.TO_THE_END, True, (stop,), stop)
    together = tuple(each for each in asked if not isinstance(each, SavepointRequest) or not each.drains)
    if stop.drains:
        others = tuple(each for each in together if not isinstance(each, SavepointRequest) or not each.stops_job)
        return EpochPlan(Reading.WHAT_IS_THERE, True, others, drains_next=stop)
    return EpochPlan(Reading.WHAT_WAS_TAKEN, True, together, stop)
