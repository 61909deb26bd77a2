"""Ready-made predicates for retries of asynchronous calls."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """True if the call returned no result."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """True if the call failed with any error."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """True if the call failed with `expected_error_type`; bind the type with `functools.partial`."""
    return isinstance(error, expected_error_type)
