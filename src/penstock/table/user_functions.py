"""Users' functions as operators call them: opened before the first row, in the process that runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.table.udf import FunctionContext, UserDefinedFunctionWrapper


def callable_of(function: UserDefinedFunctionWrapper) -> Any:
    """What a plan calls: the `eval` of a scalar or table function, or an aggregate function as it is."""
    if function.form == "aggregate":
        return OpenedAggregate(function.function)
    if function.is_pandas:
        return OpenedPandas(function.function)
    return Opened(function.function)


class Opened:
    """A function that is opened when it is first called."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.is_open = False

    def __call__(self, *arguments: Any) -> Any:
        if not self.is_open:
            self.open()
        return self.function.eval(*arguments)

    def open(self) -> None:
        self.function.open(FunctionContext(None))
        self.is_open = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "is_open": False}


class OpenedPandas(Opened):
    """A function of Series, which gets one row at a time."""

    def __call__(self, *arguments: Any) -> Any:
        import pandas as pd

        result = super().__call__(*(pd.Series([argument]) for argument in arguments))
        value = result.iloc[0] if isinstance(result, (pd.Series, pd.DataFrame)) else result[0]
        return value.item() if hasattr(value, "item") else value


class OpenedAggregate(Opened):
    """An aggregate function that is opened before its first accumulator."""

    def create_accumulator(self) -> Any:
        if not self.is_open:
            self.open()
        return self.function.create_accumulator()

    def accumulate(self, accumulator: Any, *arguments: Any) -> None:
        if not self.is_open:
            self.open()
        self.function.accumulate(accumulator, *arguments)

    def retract(self, accumulator: Any, *arguments: Any) -> None:
        if not self.is_open:
            self.open()
        self.function.retract(accumulator, *arguments)

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        if not self.is_open:
            self.open()
        self.function.merge(accumulator, accumulators)

    def get_value(self, accumulator: Any) -> Any:
        if not self.is_open:
            self.open()
        return self.function.get_value(accumulator)
