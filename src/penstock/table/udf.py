"""Functions that users write for tables: for each value, for several rows, or over groups."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.expression import Expression, FunctionCall
from penstock.table.logical_types import parse_type
from penstock.table.types import DataType, RowField, RowType

__all__ = [
    "FunctionContext",
    "AggregateFunction",
    "ScalarFunction",
    "AsyncScalarFunction",
    "TableFunction",
    "TableAggregateFunction",
    "udf",
    "udtf",
    "udaf",
    "udtaf",
]

W = TypeVar("W")
Types = DataType | str | Sequence[DataType | str]


class FunctionContext:
    """What a function can ask in `open`: metrics, parameters of the job, and which subtask it is in.

    >>> class Prefixed(ScalarFunction):
    ...     def open(self, function_context):
    ...         self.prefix = function_context.get_job_parameter("prefix", "> ")
    ...
    ...     def eval(self, text):
    ...         return self.prefix + text
    """

    def __init__(self, runtime_context: Any, job_parameters: dict[str, str] | None = None) -> None:
        self._runtime = runtime_context
        self._parameters = dict(job_parameters or {})

    def get_metric_group(self) -> Any:
        """The group of the function's metrics."""
        return self._runtime.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter of the job (`pipeline.global-job-parameters`); `default_value` if it has none of this name."""
        return self._parameters.get(key, default_value)

    def get_task_name(self) -> str:
        """The name of the task."""
        return str(self._runtime.get_task_name())

    def get_task_name_with_subtasks(self) -> str:
        """The name of the task with the number of the subtask."""
        return str(self._runtime.get_task_name_with_subtasks())

    def get_number_of_parallel_subtasks(self) -> int:
        """How many subtasks the task has."""
        return int(self._runtime.get_number_of_parallel_subtasks())

    def get_max_number_of_parallel_subtasks(self) -> int:
        """How many subtasks the task can have."""
        return int(self._runtime.get_max_number_of_parallel_subtasks())

    def get_index_of_this_subtask(self) -> int:
        """The number of the subtask, from 0."""
        return int(self._runtime.get_index_of_this_subtask())

    def get_attempt_number(self) -> int:
        """How often the subtask has been started again."""
        return int(self._runtime.get_attempt_number())


class UserDefinedFunction(ABC):  # noqa: B024  The kinds of functions have the abstract methods.
    """What all functions have."""

    def open(self, function_context: FunctionContext) -> None:
        """Called once, before the first row."""

    def close(self) -> None:
        """Called once, after the last row."""

    def is_deterministic(self) -> bool:
        """True if the same arguments always give the same result."""
        return True


class ScalarFunction(UserDefinedFunction):
    """A function that gives one value for the values of a row. Wrap it with `udf`.

    >>> class Doubled(ScalarFunction):
    ...     def eval(self, number):
    ...         return number * 2
    >>> doubled = udf(Doubled(), result_type="BIGINT")
    """

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The result for these arguments."""


class AsyncScalarFunction(UserDefinedFunction):
    """Not supported: a scalar function whose `eval` is a coroutine.

    >>> class Looked(AsyncScalarFunction):
    ...     async def eval(self, key):
    ...         return key
    """

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The result for these arguments."""


class TableFunction(UserDefinedFunction):
    """A function that gives any number of rows for the values of a row. Wrap it with `udtf`.

    >>> class Words(TableFunction):
    ...     def eval(self, line):
    ...         for word in line.split():
    ...             yield word, len(word)
    >>> words = udtf(Words(), result_types=["STRING", "INT"])
    """

    @abstractmethod
    def eval(self, *args: Any) -> Iterable[Any]:
        """The rows for these arguments: tuples or rows, or plain values if there is one column."""


class _Aggregating(UserDefinedFunction):
    @abstractmethod
    def create_accumulator(self) -> Any:
        """What a group begins with."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take in a row."""

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take a row out again; needed where rows of the group can change."""
        raise NotImplementedError(f"{type(self).__name__} has no retract(accumulator, *args), which this query needs")

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        """Take in what other accumulators have; needed for sessions."""
        raise NotImplementedError(
            f"{type(self).__name__} has no merge(accumulator, accumulators), which this query needs"
        )

    def get_result_type(self) -> DataType | str:
        """The type of the result, if `udaf` is not given one."""
        raise NotImplementedError(f"{type(self).__name__} has no get_result_type(); give udaf(...) a result_type")

    def get_accumulator_type(self) -> DataType | str:
        """The type of the accumulator, if `udaf` is not given one. It is not checked."""
        raise NotImplementedError(f"{type(self).__name__} has no get_accumulator_type()")


class AggregateFunction(_Aggregating):
    """A function that gives one value for the rows of a group. Wrap it with `udaf`.

    >>> class Total(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return [0]
    ...
    ...     def accumulate(self, accumulator, number):
    ...         accumulator[0] += number
    ...
    ...     def get_value(self, accumulator):
    ...         return accumulator[0]
    >>> total = udaf(Total(), result_type="BIGINT", accumulator_type="ARRAY<BIGINT>")
    """

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """The result of the group."""


class TableAggregateFunction(_Aggregating):
    """Not supported: a function that gives several rows for the rows of a group.

    >>> issubclass(TableAggregateFunction, AggregateFunction)
    False
    """

    @abstractmethod
    def emit_value(self, accumulator: Any) -> Iterable[Any]:
        """The rows of the group's result."""


class _PlainScalar(ScalarFunction):
    """A plain function as a scalar function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def eval(self, *args: Any) -> Any:
        return self.function(*args)


class _PlainTable(TableFunction):
    """A plain function as a table function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def eval(self, *args: Any) -> Iterable[Any]:
        rows: Iterable[Any] = self.function(*args)
        return rows


class _PandasAggregate(AggregateFunction):
    """A function of pandas Series over all values of a group, which are kept until then."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator.append(args)

    def retract(self, accumulator: Any, *args: Any) -> None:
        accumulator.remove(args)

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        for other in accumulators:
            accumulator.extend(other)

    def get_value(self, accumulator: Any) -> Any:
        import pandas as pd

        if not accumulator:
            return None
        found = self.function(*(pd.Series(column) for column in zip(*accumulator, strict=True)))
        return found.item() if hasattr(found, "item") else found


class UserDefinedFunctionWrapper:
    """A function with its types, as tables and SQL take it; call it with columns to get an expression."""

    form: str
    """scalar, table or aggregate."""

    def __init__(
        self,
        func: Any,
        input_types: Types | None,
        result_type: DataType,
        func_type: str = "general",
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> None:
        if inspect.isclass(func) or not (isinstance(func, UserDefinedFunction) or callable(func)):
            raise TypeError(f"Invalid function: not a function or callable (__call__ is not defined): {type(func)}")
        own = func.is_deterministic() if isinstance(func, UserDefinedFunction) else None
        if deterministic is not None and own is not None and deterministic != own:
            raise ValueError(f"Inconsistent deterministic: {deterministic} and {own}")
        self._func = func
        self.input_types = None if input_types is None else _type_list(input_types)
        self.result_type = result_type
        self.is_pandas = func_type == "pandas"
        self.is_deterministic = next((each for each in (deterministic, own) if each is not None), True)
        self.name = name or getattr(func, "__name__", type(func).__name__)
        self._alias_names: tuple[str, ...] = ()

    @property
    def function(self) -> Any:
        """The function as an object with `open`, `eval` or its likes, and `close`."""
        return self._func if isinstance(self._func, UserDefinedFunction) else self._wrapped(self._func)

    def _wrapped(self, func: Callable[..., Any]) -> UserDefinedFunction:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Expression[Any]:
        return FunctionCall(self, *args)

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """The same function, with names for its columns."""
        self._alias_names = alias_names
        return self

    def __repr__(self) -> str:
        return f"<{self.form} function {self.name!r}>"


class UserDefinedScalarFunctionWrapper(UserDefinedFunctionWrapper):
    """A scalar function with its types."""

    form = "scalar"

    def _wrapped(self, func: Callable[..., Any]) -> UserDefinedFunction:
        return _PlainScalar(func)


class UserDefinedTableFunctionWrapper(UserDefinedFunctionWrapper):
    """A table function with its types."""

    form = "table"

    def _wrapped(self, func: Callable[..., Any]) -> UserDefinedFunction:
        return _PlainTable(func)


class UserDefinedAggregateFunctionWrapper(UserDefinedFunctionWrapper):
    """An aggregate function with its types."""

    form = "aggregate"

    def _wrapped(self, func: Callable[..., Any]) -> UserDefinedFunction:
        if not self.is_pandas:
            raise TypeError(
                f"udaf(...) takes an AggregateFunction, or a function with func_type='pandas', got {func!r}"
            )
        return _PandasAggregate(func)


def _type_list(types: Types) -> list[DataType]:
    if isinstance(types, RowType):
        return types.field_types()
    if isinstance(types, (DataType, str)):
        return [_type(types, "input_type")]
    return [_type(each, "input_type") for each in types]


def _type(given: Any, what: str) -> DataType:
    if not isinstance(given, (DataType, str)):
        raise TypeError(f"Invalid {what}: {what} should be DataType or str but is {given}")
    return parse_type(given)


def _row_of(types: Any) -> RowType:
    """The columns of a table function: a row type, a type, or types that are called f0, f1 and so on."""
    if isinstance(types, (DataType, str)):
        parsed = _type(types, "result_type")
        if isinstance(parsed, RowType):
            return parsed
        types = [parsed]
    return RowType([RowField(f"f{at}", _type(each, "result_type")) for at, each in enumerate(types)])


def _check_func_type(func_type: str) -> None:
    if func_type not in ("general", "pandas"):
        raise ValueError(f"The func_type must be one of 'general, pandas', got {func_type}.")


@overload
def udf(
    f: Callable[..., Any] | ScalarFunction,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedScalarFunctionWrapper: ...


@overload
def udf(
    f: None = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Callable[[Callable[..., Any]], UserDefinedScalarFunctionWrapper]: ...


def udf(
    f: Any = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A scalar function for tables and SQL; also a decorator. With `func_type="pandas"` it gets and gives Series.

    >>> from penstock.table import DataTypes
    >>> @udf(result_type=DataTypes.BIGINT())
    ... def add(i, j):
    ...     return i + j
    >>> add
    <scalar function 'add'>
    """
    _check_func_type(func_type)
    if f is None:
        return functools.partial(
            udf,
            input_types=input_types,
            result_type=result_type,
            deterministic=deterministic,
            name=name,
            func_type=func_type,
        )
    if isinstance(f, AsyncScalarFunction) or inspect.iscoroutinefunction(f):
        raise UnsupportedFeatureError("udf(...): asynchronous functions are not supported; use a plain one")
    of = _type(result_type, "returnType")
    return UserDefinedScalarFunctionWrapper(f, input_types, of, func_type, deterministic, name)


def udtf(
    f: Any = None,
    input_types: Types | None = None,
    result_types: Types | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A table function for tables and SQL; also a decorator.

    >>> @udtf(result_types=["STRING"])
    ... def words(line):
    ...     yield from line.split()
    >>> words
    <table function 'words'>
    """
    if f is None:
        return functools.partial(
            udtf, input_types=input_types, result_types=result_types, deterministic=deterministic, name=name
        )
    of = _row_of(result_types)
    return UserDefinedTableFunctionWrapper(f, input_types, of, "general", deterministic, name)


def udaf(
    f: Any = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """An aggregate function for tables and SQL; also a decorator for functions of pandas Series.

    >>> @udaf(result_type="DOUBLE", func_type="pandas")
    ... def mean(values):
    ...     return values.mean()
    >>> mean
    <aggregate function 'mean'>
    """
    _check_func_type(func_type)
    if f is None:
        return functools.partial(
            udaf,
            input_types=input_types,
            result_type=result_type,
            accumulator_type=accumulator_type,
            deterministic=deterministic,
            name=name,
            func_type=func_type,
        )
    if result_type is None and isinstance(f, AggregateFunction):
        result_type = f.get_result_type()
    of = _type(result_type, "returnType")
    return UserDefinedAggregateFunctionWrapper(f, input_types, of, func_type, deterministic, name)


def udtaf(
    f: Any = None,
    input_types: Types | None = None,
    result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Not supported: a table aggregate function.

    >>> udtaf()
    Traceback (most recent call last):
    penstock.common.exceptions.UnsupportedFeatureError: udtaf(...): table aggregate functions are not supported
    """
    raise UnsupportedFeatureError("udtaf(...): table aggregate functions are not supported")
