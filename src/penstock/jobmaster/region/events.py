"""What a region's state machine and its runner say to each other: events go in, actions come out."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.exceptions import ClusterLostError, LeadershipLostError
from penstock.jobmaster.region.epoch_plan import EpochEnding, EpochPlan
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest

# --- events from outside: noted, and considered at the next decision -------------------------------------------------


@dataclass(frozen=True)
class Requested:
    """Somebody wants a checkpoint or a savepoint."""

    request: Request


@dataclass(frozen=True)
class GoBackRequested:
    """Another region has failed, and all are to start again from their last checkpoint."""


@dataclass(frozen=True)
class CancelRequested:
    """Nothing of the job may continue here."""


# --- events that answer an action ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deployed:
    """The tasks of an attempt have been made."""


@dataclass(frozen=True)
class Observed:
    """What there is to do."""

    wait_ms: int | None
    """Until the next epoch: 0 for now, None until something happens."""
    has_news_for_tasks: bool
    """True if functions wait to be notified of a checkpoint that has completed or failed."""


@dataclass(frozen=True)
class Woken:
    """A wait is over, or something has changed meanwhile."""


@dataclass(frozen=True)
class EpochPrepared:
    is_saving_first: bool
    """True if restored state must be saved before anything else."""
    is_checkpoint_due: bool


@dataclass(frozen=True)
class EpochRan:
    """All subtasks have acknowledged the epoch, which is not complete yet."""

    ending: EpochEnding


@dataclass(frozen=True)
class EpochCompleted:
    has_checkpoint: bool
    """True if the epoch ended with a checkpoint that is complete."""


@dataclass(frozen=True)
class CheckpointProposed:
    failure: str | None
    """Why the state of the drained tasks cannot be saved; None if it is on its way."""


@dataclass(frozen=True)
class SavepointSettled:
    is_written: bool


@dataclass(frozen=True)
class NoticeGiven:
    """The tasks have heard of a checkpoint."""


@dataclass(frozen=True)
class WentBack:
    """Sources and results are where the last complete checkpoint left them."""


@dataclass(frozen=True)
class RestartAllowed:
    """The restart strategy allows another attempt, and its delay is over."""


@dataclass(frozen=True)
class RestartRefused:
    """The job is to fail."""

    failure: Exception


@dataclass(frozen=True)
class Failed:
    """An action could not be carried out, and those after it were not tried."""

    failure: Exception


@dataclass(frozen=True)
class EpochCancelled:
    """The executor was cancelled while the tasks were at work."""

    reason: Exception


@dataclass(frozen=True)
class LeadershipLost:
    """Another process leads."""

    reason: LeadershipLostError


@dataclass(frozen=True)
class ClusterLost:
    """Nothing can run here any more."""

    reason: ClusterLostError


OutsideEvent = Requested | GoBackRequested | CancelRequested
Event = (
    OutsideEvent
    | Deployed
    | Observed
    | Woken
    | EpochPrepared
    | EpochRan
    | EpochCompleted
    | CheckpointProposed
    | SavepointSettled
    | NoticeGiven
    | WentBack
    | RestartAllowed
    | RestartRefused
    | Failed
    | EpochCancelled
    | LeadershipLost
    | ClusterLost
)

# --- actions that are answered by an event ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Deploy:
    """Make the tasks of an attempt: `Deployed`."""


@dataclass(frozen=True)
class Observe:
    """See what there is to do: `Observed`."""


@dataclass(frozen=True)
class Rest:
    """Wait, but no longer than until something changes: `Woken`."""

    wait_ms: int | None


@dataclass(frozen=True)
class PrepareEpoch:
    """Commit what had to wait, and see what the epoch must do: `EpochPrepared`."""


@dataclass(frozen=True)
class RunEpoch:
    """Let the tasks do an epoch: `EpochRan`."""

    plan: EpochPlan


@dataclass(frozen=True)
class CompleteEpoch:
    """Make results and checkpoint of what was acknowledged count: `EpochCompleted`."""

    ending: EpochEnding


@dataclass(frozen=True)
class ProposeCheckpoint:
    """Offer the state of the drained tasks for a savepoint, before it counts as a checkpoint: `CheckpointProposed`."""

    stop: SavepointRequest


@dataclass(frozen=True)
class AwaitSavepoint:
    """Wait until the savepoint is written or never will be, or the region must leave: `SavepointSettled`."""

    stop: SavepointRequest


@dataclass(frozen=True)
class GiveNotice:
    """Notify the tasks of the last checkpoint, in a command of its own: `NoticeGiven`."""

    is_last: bool
    """True if the tasks end with it."""


@dataclass(frozen=True)
class GoBack:
    """Set everything back to the last complete checkpoint: `WentBack`."""


@dataclass(frozen=True)
class AskForRestart:
    """Let the restart strategy decide, and wait as it says: `RestartAllowed` or `RestartRefused`."""

    failure: Exception


# --- actions that are not --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FailRequests:
    requests: tuple[Request, ...]
    reason: str


@dataclass(frozen=True)
class ReportEnd:
    """Answer these requests: the region has come to its end, as they asked for."""

    requests: tuple[Request, ...]


@dataclass(frozen=True)
class AnswerWithEnd:
    """These came when the region had done all: what it has saved at its end is its part of the answer."""

    requests: tuple[Request, ...]


@dataclass(frozen=True)
class ResumeSources:
    """The job continues although it was to stop."""


@dataclass(frozen=True)
class AbandonCheckpoint:
    """What was proposed is no checkpoint."""

    reason: str


@dataclass(frozen=True)
class EndAttempt:
    """Close the tasks and let their workers go, if there are any."""


@dataclass(frozen=True)
class Suspend:
    """Report to the job that it cannot continue here, but has not ended."""

    reason: LeadershipLostError | ClusterLostError


@dataclass(frozen=True)
class Leave:
    """There is nothing more to do. `failure` is what makes the job fail, None if nothing does."""

    failure: Exception | None = None


Action = (
    Deploy
    | Observe
    | Rest
    | PrepareEpoch
    | RunEpoch
    | CompleteEpoch
    | ProposeCheckpoint
    | AwaitSavepoint
    | GiveNotice
    | GoBack
    | AskForRestart
    | FailRequests
    | ReportEnd
    | AnswerWithEnd
    | ResumeSources
    | AbandonCheckpoint
    | EndAttempt
    | Suspend
    | Leave
)
