"""Decides whether and when a failed job starts again. No clock, no thread: times go in, a delay comes out."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, UserFunctionError

_log = logging.getLogger(__name__)


class RestartStrategy(Protocol):
    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
        """Milliseconds to wait before the restart; None if the job is to fail for good."""


class NoRestart:
    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
        return None


class FixedDelayRestart:
    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._attempts_left = attempts
        self._delay_ms = delay_ms

    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
        if self._attempts_left <= 0:
            return None
        self._attempts_left -= 1
        return self._delay_ms


class FailureRateRestart:
    """Fails for good at more than `most_failures` within `interval_ms`."""

    def __init__(self, most_failures: int, interval_ms: int, delay_ms: int) -> None:
        self._failures: deque[int] = deque(maxlen=most_failures + 1)
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms

    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
        self._failures.append(now_ms)
        is_full = len(self._failures) == self._failures.maxlen
        return None if is_full and now_ms - self._failures[0] <= self._interval_ms else self._delay_ms


class ExponentialDelayRestart:
    """Waits longer after each failure; a quiet time of `reset_ms` starts over."""

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
        self._next_ms = float(initial_ms)
        self._used = 0
        self._last_restart_ms: float | None = None

    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
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
    """Another strategy, until a function fails again and again at the same record: then nothing is going to change.

    What comes and goes is not counted: connections, timeouts and files (`OSError`), and failures without a record.
    """

    def __init__(self, strategy: RestartStrategy, attempts: int) -> None:
        self.strategy = strategy
        self._attempts = attempts
        self._last: tuple[str | None, str | None, str] | None = None
        self._repeated = 0

    def on_failure(self, now_ms: int, failure: Exception | None = None) -> int | None:
        if self._repeats(failure) and self._repeated >= self._attempts:
            _log.error(
                "the same failure at the same record %d times: not restarted again; restart-strategy.type says "
                "what is to happen instead",
                self._repeated + 1,
            )
            return None
        return self.strategy.on_failure(now_ms, failure)

    def _repeats(self, failure: Exception | None) -> bool:
        if not isinstance(failure, UserFunctionError) or failure.record is None:
            return False
        if isinstance(failure.__cause__, OSError):
            return False
        seen = failure.operator, failure.record, str(failure).partition("\n")[0]
        self._repeated = self._repeated + 1 if seen == self._last else 0
        self._last = seen
        return True


def build_restart_strategy(config: Configuration, has_checkpoints: bool) -> RestartStrategy:
    """None without checkpoints; with them Flink's exponential delay, unless the same record fails over and over."""
    name = config.get_optional(keys.RESTART_STRATEGY)
    if name is None and has_checkpoints:
        return UnlessItRepeats(_named("exponential-delay", config), config.get(keys.REPEATED_FAILURE_ATTEMPTS))
    return _named(name or "none", config)


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
