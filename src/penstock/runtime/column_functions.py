"""Runs functions, and chains of map, flat_map and filter, on columns: a whole batch at a time.

    lambda n: (n * 7919 % keys, n)        ->        (column * 7919 % keys, column)

`penstock.runtime.column_expressions` says which functions qualify, and why their results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any

import numpy as np

from penstock.graph.descriptions import FilterDescription, MapDescription, OperatorDescription
from penstock.runtime.column_expressions import Body, body_of
from penstock.runtime.column_operations import Column, NotInColumnsError, Value, constant, integer_array, truth
from penstock.runtime.columns import Array, Columns, items_of


class ColumnFunction:
    """A function that is applied to columns."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def integers(self, columns: Columns, *further: int) -> Array | None:
        """The integer that the function returns for each element; None if they must be computed one by one.

        The `further` arguments are the same for all elements.
        """
        try:
            [result] = self._body.results([value_of(columns), *map(constant, further)])
            return integer_array(result, len(columns))
        except NotInColumnsError:
            return None


def column_function(function: Any, parameters: int = 1) -> ColumnFunction | None:
    """`function`, which takes `parameters` arguments, on columns; None if it does not qualify."""
    body = _body_of(function, parameters)
    return None if body is None or body.is_generator else ColumnFunction(body)


def _body_of(function: Any, parameters: int = 1) -> Body | None:
    if isinstance(function, MethodType):
        return body_of(function.__func__, parameters, function.__self__)
    return body_of(function, parameters)


@dataclass(frozen=True)
class ColumnChain:
    """A run of map, flat_map and filter on columns."""

    _steps: list[tuple[type[OperatorDescription], Body]]

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def closed(self) -> int:
        """How many of the first steps read nothing but their elements."""
        bodies = (body for _, body in self._steps)
        return next((at for at, body in enumerate(bodies) if body.reads_outside), len(self._steps))

    def run(self, columns: Columns, most: int) -> tuple[Columns, int]:
        """The results of the first steps, and how many steps these are.

        That is at most `most`, and less if a step must process its elements one by one. The results may be empty.
        """
        length, value, timestamps = len(columns), value_of(columns), columns.timestamps
        done, found = 0, columns
        for kind, body in self._steps[:most]:
            try:
                results = body.results([value])
                if kind is MapDescription:
                    value = results[0]
                elif kind is FilterDescription:
                    places = np.flatnonzero(truth(results[0]))
                    length, value = len(places), _taken(value, places)
                    timestamps = None if timestamps is None else timestamps[places]
                else:
                    length, value = length * len(results), _interleaved(results, length)
                    timestamps = None if timestamps is None else np.repeat(timestamps, len(results))
                found = replace(columns_from(value, length), timestamps=timestamps)
            except NotInColumnsError:
                break
            done += 1
            if not length:
                return found, most
        return found, done


def column_chain(steps: Sequence[tuple[type[OperatorDescription], Callable[[Any], Any]]]) -> ColumnChain | None:
    """The steps up to the first one that does not qualify; None if that is already the first step."""
    made: list[tuple[type[OperatorDescription], Body]] = []
    for kind, function in steps:
        body = _body_of(function)
        gives_many = kind not in (MapDescription, FilterDescription)
        if body is None or body.is_generator is not gives_many:
            break
        made.append((kind, body))
    return ColumnChain(made) if made else None


def value_of(columns: Columns) -> Value:
    return _put_together(columns.kinds, iter(columns.arrays))


def _put_together(kinds: str, arrays: Iterator[Array]) -> Value:
    if not kinds.startswith("("):
        return Column(kinds, next(arrays))
    return tuple(_put_together(each, arrays) for each in items_of(kinds))


def columns_from(value: Value, length: int) -> Columns:
    arrays: list[Array] = []
    return Columns(_take_apart(value, length, arrays), arrays)


def _take_apart(value: Value, length: int, arrays: list[Array]) -> str:
    if not isinstance(value, tuple):
        arrays.append(value.array(length))
        return value.kind
    if not value:
        raise NotInColumnsError
    return f"({''.join(_take_apart(item, length, arrays) for item in value)})"


def _taken(value: Value, places: Array) -> Value:
    return tuple(_taken(item, places) for item in value) if isinstance(value, tuple) else value.taken(places)


def _interleaved(results: list[Value], length: int) -> Value:
    """All results for the first element, then those for the second, and so on."""
    parts = [columns_from(result, length) for result in results]
    if len({part.kinds for part in parts}) > 1:
        raise NotInColumnsError
    arrays = [np.stack(each, axis=1).reshape(-1) for each in zip(*(part.arrays for part in parts), strict=True)]
    return _put_together(parts[0].kinds, iter(arrays))
