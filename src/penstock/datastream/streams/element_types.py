"""Type variables of streams, for editors and type checkers: T of the elements, K of the keys.

Both stand for anything unless they are given: a bare `DataStream` is one of anything. What a function returns is not
inferred: many programs give one variable streams of several types in turn, and a type checker would refuse that. An
annotation makes the checker help: `lengths: DataStream[int] = words.map(len)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    K = TypeVar("K", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
    K = TypeVar("K")

__all__ = ["K", "T"]
