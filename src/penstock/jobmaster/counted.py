"""What the functions of a job have counted with accumulators, by subtask."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.datastream.accumulators import Accumulator

Accumulators = dict[str, Accumulator[Any, Any]]
"""By name."""


class Counted:
    """Changed by the thread of a region, read by any."""

    def __init__(self) -> None:
        self._of_subtasks: dict[tuple[int, int], Accumulators] = {}
        """By vertex and subtask."""
        self._kinds: dict[str, type] = {}

    def take(self, vertex: int, subtask: int, counted: Mapping[str, Accumulator[Any, Any]]) -> None:
        """What a subtask has counted in an epoch."""
        for name, accumulator in counted.items():
            self._check_kind(name, type(accumulator))
            of_subtask = self._of_subtasks.setdefault((vertex, subtask), {})
            if name in of_subtask:
                of_subtask[name].merge(accumulator)
            else:
                of_subtask[name] = accumulator

    def _check_kind(self, name: str, kind: type) -> None:
        first = self._kinds.setdefault(name, kind)
        if first is not kind:
            raise TypeError(
                f"the accumulator '{name}' is {first.__name__} in one function and {kind.__name__} in another; "
                "register one kind of accumulator per name"
            )

    def of_subtask(self, vertex: int, subtask: int) -> Accumulators:
        return {name: each.clone() for name, each in list(self._of_subtasks.get((vertex, subtask), {}).items())}

    def of_vertex(self, vertex: int) -> Accumulators:
        return merged(self.of_subtask(*at) for at in list(self._of_subtasks) if at[0] == vertex)

    def of_all(self) -> Accumulators:
        return merged(self.of_subtask(*at) for at in list(self._of_subtasks))

    def copy(self) -> Counted:
        return copy.deepcopy(self)


def merged(several: Iterable[Accumulators]) -> Accumulators:
    """One accumulator for each name. Changes the accumulators that it is given."""
    total: Accumulators = {}
    for each in several:
        for name, accumulator in each.items():
            if name in total:
                total[name].merge(accumulator)
            else:
                total[name] = accumulator
    return total
