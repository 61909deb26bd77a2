"""Which key group a key belongs to, and which subtask owns a key group."""

from __future__ import annotations

from typing import Any

from penstock.runtime.key_hashing import check_kind, murmur_mix, stable_hash
from penstock.runtime.nan_keys import as_key, may_hold_nan


def key_group_of(key: Any, max_parallelism: int) -> int:
    """The key group of `key`, between 0 and `max_parallelism` - 1."""
    check_kind(type(key))
    return murmur_mix(stable_hash(key)) % max_parallelism


def subtask_of_key_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """Flink's formula: group * parallelism / max parallelism."""
    return group * parallelism // max_parallelism


def key_group_range(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that `subtask` owns: the inverse of `subtask_of_key_group`."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(start, end + 1)


class KeyOwners(dict[Any, int]):
    """The subtask that owns each key: `owners[key]`.

    Keys are cached, so that frequent keys are hashed once. A full cache is emptied, so memory stays bounded. When there
    have been many keys, new keys of a batch are hashed together.
    """

    def __init__(self, max_parallelism: int, parallelism: int, limit: int = 1 << 17, many: int = 1 << 13) -> None:
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._limit = limit
        self._many = many
        """From this number of keys on, loading NumPy pays off."""
        self._are_many = False
        self._nan_seen = False

    def __missing__(self, key: Any) -> int:
        group = key_group_of(key, self._max_parallelism)
        owner = subtask_of_key_group(group, self._max_parallelism, self._parallelism)
        if as_key(key) is not key:  # Not cached, because `__missing__` must notice each key with a NaN.
            self._nan_seen = True
            return owner
        self._make_room(1)
        self[key] = owner
        return owner

    def take_nan_seen(self) -> bool:
        """True if a key that contains a NaN was looked up since the last call: see `nan_keys`."""
        seen, self._nan_seen = self._nan_seen, False
        return seen

    def of(self, keys: list[Any]) -> list[int]:
        """The owners of many keys."""
        if self._are_many:
            if set(map(type, keys)) == {int}:
                return self._hashed(keys)  # As quick as looking them up.
            self._add_missing(keys)
        return list(map(self.__getitem__, keys))

    def of_column(self, keys: Any) -> Any:
        """The owners of the keys in a column (`penstock.runtime.columns`): integers or strings."""
        import numpy as np

        from penstock.runtime.bulk_hashing import owners_of_ints

        if keys.dtype == object:
            return np.array(self.of(keys.tolist()))
        return owners_of_ints(keys, self._max_parallelism, self._parallelism)

    def _add_missing(self, keys: list[Any]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self]
        if may_hold_nan(missing):
            missing = [key for key in missing if as_key(key) is key]
        if missing:
            for kind in set(map(type, missing)):
                check_kind(kind)
            self._make_room(len(missing))
            self.update(zip(missing, self._hashed(missing), strict=True))

    def _hashed(self, keys: list[Any]) -> list[int]:
        from penstock.runtime.bulk_hashing import owners_of

        return owners_of(keys, self._max_parallelism, self._parallelism)

    def _make_room(self, keys: int) -> None:
        self._are_many = self._are_many or len(self) >= self._many
        if len(self) + keys > self._limit:
            self.clear()
