"""Penstock's own exceptions.

A wrong argument of a call also raises Python's TypeError or ValueError, and a file that cannot be reached an OSError.

PenstockError
├── InvalidProgramError (ValueError)             a job that cannot be built
├── ConfigurationError (ValueError)              a setting that makes no sense
├── UnsupportedFeatureError (NotImplementedError)  a name that exists but cannot work here
├── StateAccessError                             state or timers used where there are none
├── LocalStateError                              state on the local disk cannot be written or read
├── EnvironmentSetupError                        the machine lacks something (Java, a package)
├── MissingInputError (FileNotFoundError)        a file that a source is to read is not there
├── ConnectorError                               a system that a source or sink uses refused, or is out of reach
├── LeadershipLostError                          another job manager leads now, and this one must stop
├── ClusterLostError                             everything that could run the job's tasks has ended
├── AbandonedError                               a call that returned after its job had ended without it
├── CheckpointError                              a checkpoint or savepoint cannot be written, found or used
│   ├── CorruptStateError                        ... because a file of it is missing or damaged
│   └── StateMismatchError (ValueError)          ... because it does not fit the job
└── JobExecutionError                            the job ran and failed
    ├── UserFunctionError                        ... because a user function raised
    └── WorkersLostError                         ... because processes that ran its tasks are gone
"""

from __future__ import annotations

MADE_AT = "  made at "
"""In messages: before the line of the program that made an operator."""


class PenstockError(Exception):
    """Base of all exceptions of Penstock."""


class InvalidProgramError(PenstockError, ValueError):
    """The job cannot be built from what the program says."""


class ConfigurationError(PenstockError, ValueError):
    """A configuration key has a value that cannot be used."""


class UnsupportedFeatureError(PenstockError, NotImplementedError):
    """The name exists for compatibility but cannot work on this engine; the message says what to use instead."""


class StateAccessError(PenstockError):
    """State or timers were used where they do not exist, for instance on a stream without a key."""


class LocalStateError(PenstockError):
    """Working state cannot be written to the local disk or read from it."""


class EnvironmentSetupError(PenstockError):
    """Something the machine must provide is missing or too old."""


class MissingInputError(PenstockError, FileNotFoundError):
    """A file or folder that a source is to read is not there when the job starts: waiting will not bring it."""


class ConnectorError(PenstockError):
    """A system that a source or sink uses refused what it was asked for, or cannot be reached."""


class LeadershipLostError(PenstockError):
    """Another job manager has become the leader: this one must not touch the jobs that it has taken over."""


class ClusterLostError(PenstockError):
    """Everything that could run the tasks of this process's jobs has ended: nothing can be restarted here."""


class AbandonedError(PenstockError):
    """A call has returned after its job had ended without waiting for it: nothing may follow it."""


class CheckpointError(PenstockError):
    """A checkpoint or savepoint cannot be written, found or used."""


class CorruptStateError(CheckpointError):
    """A file of a checkpoint or savepoint is missing, damaged, or of a format that this version does not read."""


class StateMismatchError(CheckpointError, ValueError):
    """The state of a checkpoint or savepoint does not fit the job that is to start from it."""


class JobExecutionError(PenstockError):
    """The job started and failed."""

    def __init__(self, message: str, job_id: str | None = None, job_name: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.job_id = job_id
        self.job_name = job_name
        self.host: str | None = None
        """The host of the failed task; None if no task failed."""

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions pickle by their positional arguments only; these cross process borders with all they know.
        return (_rebuild, (type(self), self.__dict__.copy()))


class UserFunctionError(JobExecutionError):
    """A user function raised: says in which operator and subtask, on which record, and where in the user's code."""

    def __init__(
        self,
        message: str,
        operator: str | None = None,
        subtask: int | None = None,
        record: str | None = None,
        user_traceback: str | None = None,
        job_id: str | None = None,
        job_name: str | None = None,
    ) -> None:
        super().__init__(message, job_id, job_name)
        self.operator = operator
        self.subtask = subtask
        self.record = record
        self.user_traceback = user_traceback


class WorkersLostError(JobExecutionError):
    """Processes that ran the job's tasks have ended, or do not answer."""


def _rebuild(kind: type[JobExecutionError], attributes: dict[str, object]) -> JobExecutionError:
    error = kind.__new__(kind)
    JobExecutionError.__init__(error, str(attributes["message"]))
    error.__dict__.update(attributes)
    return error
