"""Decides whether and when a failed job starts again. No clock, no thread: times go in, a delay comes out."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.checkpoint.coordinator import CheckpointFailedError
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import (
    ConfigurationError,
    ConnectorError,
    EnvironmentSetupError,
    MissingInputError,
    UserFunctionError,
    WorkersLostError,
)
from penstock.graph.regions import Region


@dataclass(frozen=True)
class FailedAttempt:
    """What a strategy may know of an attempt that has failed."""

    failure: Exception | None = None
    region: Region = frozenset()
    has_done_epochs: bool = False
    """True if the region has completed an epoch since it last failed."""
    has_moved_on: bool = False
    """True if it has completed a checkpoint since then, and has read something before that."""


class RegionProgress:
    """What regions have done since each of them failed the last time."""

    def __init__(self) -> None:
        self.with_epochs: set[Region] = set()
        """Those that have completed an epoch."""
        self.with_checkpoints: set[Region] = set()
        """Those that have completed a checkpoint, and read something before."""

    def end_attempt(self, failure: Exception, region: Region) -> FailedAttempt:
        attempt = FailedAttempt(failure, region, region in self.with_epochs, region in self.with_checkpoints)
        self.with_epochs.discard(region)
        self.with_checkpoints.discard(region)
        return attempt


_UNKNOWN = FailedAttempt()


class RestartStrategy(Protocol):
    @property
    def description(self) -> str:
        """The strategy in a few words, beginning with the name that a user sets."""

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        """Milliseconds to wait before the restart; None if the job is to fail for good."""

    @property
    def refusal(self) -> str:
        """Why a restart was refused, with the key that changes it; empty if nobody expects one."""


class NoRestart:
    description = "none"

    def __init__(self, refusal: str = f"{keys.RESTART_STRATEGY.key} is none") -> None:
        self.refusal = refusal

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        return None


class FixedDelayRestart:
    description = "fixed-delay"

    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._attempts_left = attempts
        self._delay_ms = delay_ms
        self.refusal = f"{keys.FIXED_DELAY_ATTEMPTS.key} is {attempts}"

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        if self._attempts_left <= 0:
            return None
        self._attempts_left -= 1
        return self._delay_ms


class FailureRateRestart:
    """Fails for good at more than `most_failures` within `interval_ms`."""

    description = "failure-rate"

    def __init__(self, most_failures: int, interval_ms: int, delay_ms: int) -> None:
        self._failures: deque[int] = deque(maxlen=most_failures + 1)
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self.refusal = f"{keys.FAILURE_RATE_MAX.key} is {most_failures}, within {interval_ms} ms"

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        self._failures.append(now_ms)
        is_full = len(self._failures) == self._failures.maxlen
        return None if is_full and now_ms - self._failures[0] <= self._interval_ms else self._delay_ms


class ExponentialDelayRestart:
    """Waits longer after each failure; a quiet time of `reset_ms` starts over."""

    description = "exponential-delay"

    def __init__(
        self,
        initial_ms: int,
        max_ms: int,
        multiplier: float,
        reset_ms: int,
        jitter: float,
        attempts: int,
        random_between: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._initial_ms, self._max_ms = initial_ms, max_ms
        self._multiplier, self._reset_ms, self._jitter = multiplier, reset_ms, jitter
        self._attempts = attempts
        self._random_between = random_between
        self.refusal = f"{keys.EXPONENTIAL_ATTEMPTS.key} is {attempts}"
        self._next_ms = float(initial_ms)
        self._used = 0
        self._last_restart_ms: float | None = None

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        if self._last_restart_ms is not None and now_ms - self._last_restart_ms >= self._reset_ms:
            self._next_ms, self._used = float(self._initial_ms), 0
        if self._used >= self._attempts:
            return None
        self._used += 1
        delay = self._next_ms * (1 + self._random_between(-self._jitter, self._jitter))
        delay = min(delay, self._max_ms)
        self._next_ms = min(self._next_ms * self._multiplier, self._max_ms)
        self._last_restart_ms = now_ms + delay
        return int(delay)


class UnlessItRepeats:
    """Another strategy, until a region fails over and over in the same way: then nothing is going to change.

    That is the same error at the same record; or, where there is no record, the same error of attempts that have not
    completed an epoch, as when they are restored; or the loss of workers, if no attempt comes beyond its checkpoint.
    Other failures in between change nothing: two bad records fail in turn. A record counts anew if as many attempts
    have come further and failed otherwise.
    """

    def __init__(self, strategy: RestartStrategy, attempts: int) -> None:
        self._strategy = strategy
        self._attempts = attempts
        self._ways: dict[Region, _Ways] = {}
        self._has_repeated = False
        self.description = f"{strategy.description}, at most {attempts} times for the same failure"

    @property
    def refusal(self) -> str:
        if not self._has_repeated:
            return self._strategy.refusal
        return (
            f"it failed {self._attempts + 1} times in the same way, and {keys.REPEATED_FAILURE_ATTEMPTS.key} is "
            f"{self._attempts}; with {keys.RESTART_STRATEGY.key} exponential-delay it restarts for ever"
        )

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        self._has_repeated = self._count(attempt) > self._attempts
        return None if self._has_repeated else self._strategy.on_failure(now_ms, attempt)

    def _count(self, attempt: FailedAttempt) -> int:
        """How often the region has failed in this way; 0 if that does not matter."""
        ways = self._ways.setdefault(attempt.region, _Ways(self._attempts))
        ways.forget(attempt)
        if attempt.failure is None or _comes_and_goes(attempt.failure):
            return 0
        return ways.count(_Way.of(attempt.failure))


_MOST_WAYS = 1_000
"""Of a region, in case that each failure says something else."""


class _Ways:
    """In which ways a region has failed, and how often. Failures that alternate are counted each."""

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._times: dict[_Way, int] = {}
        self._others: dict[_Way, int] = {}
        """How many attempts have come further since, and yet failed."""

    def forget(self, attempt: FailedAttempt) -> None:
        """Forget the ways that do not count any more after this attempt."""
        for way in list(self._times):
            self._others[way] += attempt.has_moved_on
            if way.is_over(attempt) or self._others[way] > self._attempts:
                self._forget(way)

    def count(self, way: _Way) -> int:
        """How often the region has failed in this way, with this time."""
        times = self._times.pop(way, 0) + 1  # The last one is at the end.
        self._times[way], self._others[way] = times, 0
        if len(self._times) > _MOST_WAYS:
            self._forget(next(iter(self._times)))
        return times

    def _forget(self, way: _Way) -> None:
        del self._times[way], self._others[way]


@dataclass(frozen=True)
class _Way:
    """In which way an attempt has failed."""

    kind: type[BaseException]
    operator: str | None = None
    record: str | None = None
    said: str = ""

    @staticmethod
    def of(failure: Exception) -> _Way:
        if isinstance(failure, WorkersLostError):
            return _Way(WorkersLostError)  # Its message names the process, which differs each time.
        said = str(failure).partition("\n")[0]
        if isinstance(failure, UserFunctionError):
            return _Way(type(failure), failure.operator, failure.record, said)
        return _Way(type(failure), said=said)

    def is_over(self, attempt: FailedAttempt) -> bool:
        """True if the region has done what it could not do when it failed the last time."""
        if self.kind is WorkersLostError:  # The epochs between the checkpoint and the fatal one are repeated.
            return attempt.has_moved_on
        return self.record is None and attempt.has_done_epochs


_LASTING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_NAMES_OF_CLIENTS = {"OperationalError", "InterfaceError", "ConnectionError", "TimeoutError", "KafkaException"}
"""What clients of services call such errors if they are no OSError: names of DB-API, Redis and others."""


def _comes_and_goes(failure: Exception) -> bool:
    """True for what may be better in a while: connections, timeouts, files that cannot be read or written now."""
    cause = failure.__cause__ or failure
    if isinstance(cause, OSError):
        return not isinstance(cause, _LASTING)
    is_of_a_client = any(each.__name__ in _NAMES_OF_CLIENTS for each in type(cause).__mro__)
    return is_of_a_client or isinstance(cause, (ConnectorError, CheckpointFailedError))


class UnlessSomethingIsMissing:
    """Another strategy, except for failures that no restart can mend: something that must be there is not."""

    _MISSING = (MissingInputError, EnvironmentSetupError)

    def __init__(self, strategy: RestartStrategy) -> None:
        self._strategy = strategy
        self._is_missing = False
        self.description = strategy.description

    @property
    def refusal(self) -> str:
        if not self._is_missing:
            return self._strategy.refusal
        return f"what is missing at the start is an error at once, unless {keys.RESTART_STRATEGY.key} is set"

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        failure = attempt.failure
        cause = None if failure is None else failure.__cause__ or failure
        self._is_missing = isinstance(cause, self._MISSING)
        return None if self._is_missing else self._strategy.on_failure(now_ms, attempt)


class OnlyForLostWorkers:
    """Another strategy when workers are lost; any other failure is one that somebody waits to see."""

    def __init__(self, strategy: RestartStrategy) -> None:
        self._strategy = strategy
        self._is_lost = False
        self.description = f"none; when workers are lost, {strategy.description}"

    @property
    def refusal(self) -> str:
        if self._is_lost:
            return self._strategy.refusal
        return (
            f"a bounded job in the process of its own program fails at the first error, unless "
            f"{keys.RESTART_STRATEGY.key} is set"
        )

    def on_failure(self, now_ms: int, attempt: FailedAttempt = _UNKNOWN) -> int | None:
        self._is_lost = isinstance(attempt.failure, WorkersLostError)
        return self._strategy.on_failure(now_ms, attempt) if self._is_lost else None


def build_restart_strategy(config: Configuration, has_checkpoints: bool, is_watched: bool = False) -> RestartStrategy:
    """The strategy that is set. Otherwise none without checkpoints; with them an exponential delay, until one repeats.

    `is_watched`: somebody waits for the job's end, and wants to see what is wrong with it.
    """
    name = config.get_optional(keys.RESTART_STRATEGY)
    if name is not None:
        return _named(name, config)
    if not has_checkpoints:
        return NoRestart(
            "" if is_watched else f"it takes no checkpoints; {keys.CHECKPOINT_INTERVAL.key} turns them and restarts on"
        )
    default = UnlessItRepeats(_named("exponential-delay", config), config.get(keys.REPEATED_FAILURE_ATTEMPTS))
    return OnlyForLostWorkers(default) if is_watched else UnlessSomethingIsMissing(default)


def _named(name: str, config: Configuration) -> RestartStrategy:
    match name.lower().replace("_", "-").replace("exponentialdelay", "exponential-delay"):
        case "none" | "off" | "disable":
            return NoRestart()
        case "fixed-delay" | "fixeddelay":
            return FixedDelayRestart(config.get(keys.FIXED_DELAY_ATTEMPTS), config.get(keys.FIXED_DELAY))
        case "failure-rate" | "failurerate":
            return FailureRateRestart(
                config.get(keys.FAILURE_RATE_MAX),
                config.get(keys.FAILURE_RATE_INTERVAL),
                config.get(keys.FAILURE_RATE_DELAY),
            )
        case "exponential-delay":
            return ExponentialDelayRestart(
                config.get(keys.EXPONENTIAL_INITIAL),
                config.get(keys.EXPONENTIAL_MAX),
                config.get(keys.EXPONENTIAL_MULTIPLIER),
                config.get(keys.EXPONENTIAL_RESET),
                config.get(keys.EXPONENTIAL_JITTER),
                config.get(keys.EXPONENTIAL_ATTEMPTS),
            )
    raise ConfigurationError(
        f"restart-strategy.type: {name!r} is not known; use none, fixed-delay, exponential-delay or failure-rate"
    )
