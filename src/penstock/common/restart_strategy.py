"""What happens after a failure: whether, how often and when a job starts again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from penstock.common import config_keys
from penstock.common.config_values import to_text
from penstock.common.configuration import Configuration
from penstock.common.time import Duration, Time, to_milliseconds

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

Delay = int | timedelta | Time | Duration


class RestartStrategyConfiguration(ABC):
    """A restart strategy with its settings: an immutable value."""

    @abstractmethod
    def get_description(self) -> str:
        """One line for people."""

    @abstractmethod
    def to_configuration(self) -> dict[str, str]:
        """The strategy as configuration keys; empty if the configuration decides."""


class RestartStrategies:
    """Makes restart strategies. Delays are milliseconds, or `timedelta`, `Duration` or `Time`.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (10000 ms). #3 restart attempts.'
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure fails the job."""

        def get_description(self) -> str:
            return "Restart deactivated."

        def to_configuration(self) -> dict[str, str]:
            return {config_keys.RESTART_STRATEGY.key: "none"}

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The configuration decides."""

        def get_description(self) -> str:
            return "Cluster level default restart strategy"

        def to_configuration(self) -> dict[str, str]:
            return {}

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A number of restarts, each after the same delay."""

        restart_attempts: int = 1
        delay_between_attempts_interval: Delay = 1000

        def __post_init__(self) -> None:
            if self.restart_attempts < 0:
                raise ValueError(f"restart_attempts cannot be negative, got {self.restart_attempts}")
            _check_delay("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_restart_attempts(self) -> int:
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            delay = to_milliseconds(self.delay_between_attempts_interval)
            return f"Restart with fixed delay ({delay} ms). #{self.restart_attempts} restart attempts."

        def to_configuration(self) -> dict[str, str]:
            return {
                config_keys.RESTART_STRATEGY.key: "fixed-delay",
                config_keys.FIXED_DELAY_ATTEMPTS.key: to_text(self.restart_attempts),
                config_keys.FIXED_DELAY.key: _ms_text(self.delay_between_attempts_interval),
            }

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts for as long as no more than this many failures fall into the interval."""

        max_failure_rate: int = 1
        failure_interval: Delay = 60_000
        delay_between_attempts_interval: Delay = 1000

        def __post_init__(self) -> None:
            if self.max_failure_rate <= 0:
                raise ValueError(f"max_failure_rate must be positive, got {self.max_failure_rate}")
            if _check_delay("failure_interval", self.failure_interval) == 0:
                raise ValueError("failure_interval must be positive, got 0 ms")
            _check_delay("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_max_failure_rate(self) -> int:
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            return _timedelta(self.failure_interval)

        def get_delay_between_attempts_interval(self) -> timedelta:
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            return (
                f"Failure rate restart with maximum of {self.max_failure_rate} failures within interval "
                f"{_ms_text(self.failure_interval)} and fixed delay {_ms_text(self.delay_between_attempts_interval)}"
            )

        def to_configuration(self) -> dict[str, str]:
            return {
                config_keys.RESTART_STRATEGY.key: "failure-rate",
                config_keys.FAILURE_RATE_MAX.key: to_text(self.max_failure_rate),
                config_keys.FAILURE_RATE_INTERVAL.key: _ms_text(self.failure_interval),
                config_keys.FAILURE_RATE_DELAY.key: _ms_text(self.delay_between_attempts_interval),
            }

    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts without limit, with delays that grow up to a maximum and start over after a quiet time."""

        initial_backoff: Delay = 1000
        max_backoff: Delay = 60_000
        backoff_multiplier: float = 1.5
        reset_backoff_threshold: Delay = 3_600_000
        jitter_factor: float = 0.1

        def __post_init__(self) -> None:
            first = _check_delay("initial_backoff", self.initial_backoff)
            limit = _check_delay("max_backoff", self.max_backoff)
            if first == 0 or limit < first:
                raise ValueError(
                    f"delays must grow from initial_backoff > 0 to max_backoff, got {first} ms and {limit} ms"
                )
            if self.backoff_multiplier <= 1:
                raise ValueError(f"backoff_multiplier must be greater than 1, got {self.backoff_multiplier}")
            if not 0 <= self.jitter_factor <= 1:
                raise ValueError(f"jitter_factor must be between 0 and 1, got {self.jitter_factor}")
            _check_delay("reset_backoff_threshold", self.reset_backoff_threshold)

        def get_description(self) -> str:
            return (
                f"Restart with exponential delay: starting at {_ms_text(self.initial_backoff)}, growing by "
                f"{self.backoff_multiplier} up to {_ms_text(self.max_backoff)}, reset after "
                f"{_ms_text(self.reset_backoff_threshold)}, jitter {self.jitter_factor}"
            )

        def to_configuration(self) -> dict[str, str]:
            return {
                config_keys.RESTART_STRATEGY.key: "exponential-delay",
                config_keys.EXPONENTIAL_INITIAL.key: _ms_text(self.initial_backoff),
                config_keys.EXPONENTIAL_MAX.key: _ms_text(self.max_backoff),
                config_keys.EXPONENTIAL_MULTIPLIER.key: to_text(self.backoff_multiplier),
                config_keys.EXPONENTIAL_RESET.key: _ms_text(self.reset_backoff_threshold),
                config_keys.EXPONENTIAL_JITTER.key: to_text(self.jitter_factor),
            }

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """The first failure fails the job."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Leave the strategy to the configuration; the same as setting none."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Delay
    ) -> FixedDelayRestartStrategyConfiguration:
        """Restart up to `restart_attempts` times, always after the same delay.

        >>> RestartStrategies.fixed_delay_restart(3, 1000).to_configuration()["restart-strategy.type"]
        'fixed-delay'
        """
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Delay, delay_interval: Delay
    ) -> FailureRateRestartStrategyConfiguration:
        """Restart unless there are more than `failure_rate` failures within `failure_interval`."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: Delay,
        max_backoff: Delay,
        backoff_multiplier: float,
        reset_backoff_threshold: Delay,
        jitter_factor: float,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Restart without limit, after delays that grow to `max_backoff` and start over after a quiet time."""
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            initial_backoff, max_backoff, backoff_multiplier, reset_backoff_threshold, jitter_factor
        )

    @staticmethod
    def from_configuration(config: Configuration) -> RestartStrategyConfiguration:
        """The strategy that a configuration names; the fallback strategy if it names none."""
        name = config.get_optional(config_keys.RESTART_STRATEGY) or ""
        match name.lower().replace("-", ""):
            case "none" | "off" | "disable":
                return RestartStrategies.no_restart()
            case "fixeddelay":
                return RestartStrategies.fixed_delay_restart(
                    config.get(config_keys.FIXED_DELAY_ATTEMPTS), config.get(config_keys.FIXED_DELAY)
                )
            case "failurerate":
                return RestartStrategies.failure_rate_restart(
                    config.get(config_keys.FAILURE_RATE_MAX),
                    config.get(config_keys.FAILURE_RATE_INTERVAL),
                    config.get(config_keys.FAILURE_RATE_DELAY),
                )
            case "exponentialdelay":
                return RestartStrategies.exponential_delay_restart(
                    config.get(config_keys.EXPONENTIAL_INITIAL),
                    config.get(config_keys.EXPONENTIAL_MAX),
                    config.get(config_keys.EXPONENTIAL_MULTIPLIER),
                    config.get(config_keys.EXPONENTIAL_RESET),
                    config.get(config_keys.EXPONENTIAL_JITTER),
                )
        return RestartStrategies.fall_back_restart()


def _check_delay(name: str, delay: Delay) -> int:
    try:
        delay_ms = to_milliseconds(delay)
    except TypeError as error:
        raise TypeError(f"{name} takes milliseconds, a timedelta, a Duration or a Time, got {delay!r}") from error
    if delay_ms < 0:
        raise ValueError(f"{name} cannot be negative, got {delay_ms} ms")
    return delay_ms


def _timedelta(delay: Delay) -> timedelta:
    return timedelta(milliseconds=to_milliseconds(delay))


def _ms_text(delay: Delay) -> str:
    return f"{to_milliseconds(delay)} ms"
