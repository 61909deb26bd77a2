"""What happens to an element for which a function raises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, InvalidProgramError, PenstockError
from penstock.common.time import Duration
from penstock.datastream.output_tag import OutputTag

__all__ = ["FailedElement", "OnError"]


@dataclass(frozen=True)
class FailedElement:
    """An element for which a function raised, or the timer during which it did.

    `OnError` has an example.
    """

    value: Any
    """The element as the function got it; None for a timer."""
    key: Any
    """The current key; None on a stream without keys."""
    timestamp: int | None
    """The event time of the element; None if it has none."""
    timer: int | None
    """The time of the timer; None for an element."""
    operator: str
    subtask: int
    error: str
    """The class of the exception, such as `ValueError`."""
    message: str
    traceback: str
    """The frames of the program, and the exception."""


@dataclass(frozen=True)
class OnError:
    """What an operator does if its function raises for an element or a timer.

    >>> import json
    >>> from penstock.datastream import OutputTag
    >>> FAILED = OutputTag("failed")
    >>> lines = env.from_collection(['{"a": 1}', '{"a"'])
    >>> parsed = lines.map(json.loads).on_error(OnError.to_side_output(FAILED))
    >>> failed = parsed.get_side_output(FAILED).map(lambda each: f"{each.error}: {each.value}")
    >>> list(failed.execute_and_collect())
    ['JSONDecodeError: {"a"']

    If an element fails, nothing that was emitted for it is passed on. State and timers keep what the function has
    changed before it raised.
    """

    kind: Literal["fail", "skip", "side output"]
    tag: OutputTag | None = None
    errors: tuple[type[Exception], ...] = (Exception,)
    """Elements that fail with other errors fail the job."""
    most: int | None = None
    """A subtask in which more elements fail within `per_ms` fails the job; None for any number."""
    per_ms: int = 0

    @staticmethod
    def fail() -> OnError:
        """The job fails, and the error shows the element. This is the default."""
        return OnError("fail")

    @staticmethod
    def skip() -> OnError:
        """The element is left out, logged, and counted by the operator's metric `numRecordsInErrors`."""
        return OnError("skip")

    @staticmethod
    def to_side_output(tag: OutputTag) -> OnError:
        """The element goes, as a `FailedElement`, to a side output of the operator, and is counted as well."""
        if not isinstance(tag, OutputTag):
            raise TypeError(f"OnError.to_side_output needs an OutputTag, got {tag!r}")
        return OnError("side output", tag)

    def only(self, *errors: type[Exception]) -> OnError:
        """The same for these errors alone; any other error fails the job.

        >>> OnError.skip().only(ValueError, KeyError).takes(TypeError("not a number"))
        False
        """
        if not errors or not all(isinstance(each, type) and issubclass(each, Exception) for each in errors):
            raise TypeError(f"OnError.only needs classes of exceptions, got {errors!r}")
        return replace(self, errors=errors)

    def at_most(self, count: int, per: Duration) -> OnError:
        """The same, but a subtask in which more than `count` elements fail within `per` fails the job.

        >>> OnError.skip().at_most(100, per=Duration.of_minutes(1)).per_ms
        60000
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"OnError.at_most: the count must be a whole number of at least 0, got {count!r}")
        if not isinstance(per, Duration) or per.to_millis() <= 0:
            raise ValueError(f"OnError.at_most: `per` must be a positive Duration, got {per!r}")
        return replace(self, most=count, per_ms=per.to_millis())

    def takes(self, error: Exception) -> bool:
        """True if an element that fails with `error` is left out, or goes to the side output."""
        return isinstance(error, self.errors) and not _is_of_the_runtime(error)


def _is_of_the_runtime(error: Exception) -> bool:
    """True if state, disk or memory is wrong, and not the element. A result of a wrong type is the element's fault."""
    return isinstance(error, (PenstockError, MemoryError)) and not isinstance(error, InvalidProgramError)


def on_error_of(config: Configuration) -> OnError:
    """What the configuration says about operators that say nothing themselves."""
    kind = config.get(keys.ON_ERROR).lower()
    if kind not in ("fail", "skip"):
        raise ConfigurationError(
            f"{keys.ON_ERROR.key}: {kind!r} is not one of fail, skip; for a side output call "
            f"on_error(OnError.to_side_output(tag)) in the program"
        )
    policy = OnError.skip() if kind == "skip" else OnError.fail()
    most = config.get_optional(keys.ON_ERROR_MOST)
    if most is None:
        return policy
    return policy.at_most(most, Duration.of_millis(config.get(keys.ON_ERROR_INTERVAL)))
