"""Key groups of many keys at once: the same as `key_groups` gives one by one, with the arithmetic done by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.key_hashing import stable_hash

_Codes = NDArray[np.uint32]


def owners_of(keys: list[Any], max_parallelism: int, parallelism: int) -> list[int]:
    """The subtask that owns each key."""
    groups = _murmur_mix(_hash_codes(keys)) % np.uint32(max_parallelism)
    owners: list[int] = (groups.astype(np.int64) * parallelism // max_parallelism).tolist()
    return owners


def _hash_codes(keys: list[Any]) -> _Codes:
    if set(map(type, keys)) == {int}:
        codes = np.array(list(map(hash, keys)), dtype=np.int64)
        return (codes ^ (codes >> 32)).astype(np.uint32)
    return np.array(list(map(stable_hash, keys)), dtype=np.uint32)


def _murmur_mix(code: _Codes) -> _Codes:
    """`key_hashing.murmur_mix` of each code."""
    code = code * np.uint32(0xCC9E2D51)
    code = (code << np.uint32(15)) | (code >> np.uint32(17))
    code *= np.uint32(0x1B873593)
    code = (code << np.uint32(13)) | (code >> np.uint32(19))
    code = code * np.uint32(5) + np.uint32(0xE6546B64)
    code ^= np.uint32(4)
    code ^= code >> np.uint32(16)
    code *= np.uint32(0x85EBCA6B)
    code ^= code >> np.uint32(13)
    code *= np.uint32(0xC2B2AE35)
    code ^= code >> np.uint32(16)
    negative = (~code + np.uint32(1)) & np.uint32(0x7FFFFFFF)
    return np.where(code < np.uint32(0x80000000), code, negative)
