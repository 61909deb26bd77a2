"""Collections in the accumulators of aggregate functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

__all__ = ["DataView", "ListView", "MapView"]


class DataView(ABC):
    """A collection in an accumulator: `ListView` or `MapView`.

    >>> isinstance(ListView(), DataView)
    True
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove everything."""


class ListView(DataView, Generic[T]):
    """A list in an accumulator.

    >>> view = ListView()
    >>> view.add_all([1, 2])
    >>> list(view)
    [1, 2]
    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """The items, in order."""
        return self._list

    def add(self, value: T) -> None:
        """Append an item."""
        self._list.append(value)

    def add_all(self, values: list[T]) -> None:
        """Append items."""
        self._list.extend(values)

    def clear(self) -> None:
        """Remove everything."""
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)


class MapView(DataView, Generic[K, V]):
    """A map in an accumulator.

    >>> view = MapView()
    >>> view["a"] = 1
    >>> dict(view.items())
    {'a': 1}
    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """The value of a key; KeyError if there is none."""
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key; KeyError if it is not there."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """True if the key has a value."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys and values."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """The keys."""
        return self._dict.keys()

    def values(self) -> Iterable[V]:
        """The values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """True if there is no key."""
        return not self._dict

    def clear(self) -> None:
        """Remove everything."""
        self._dict = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._dict)
