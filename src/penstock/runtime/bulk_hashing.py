"""The owners of many keys at once: the same as `key_groups` finds one by one, with the arithmetic done by NumPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.key_hashing import stable_hash

_Codes = NDArray[np.uint32]


def owners_of(keys: list[Any], max_parallelism: int, parallelism: int) -> list[int]:
    """The subtask that owns each key."""
    owners: list[int] = _owners(_hash_codes(keys), max_parallelism, parallelism).tolist()
    return owners


def owners_of_ints(keys: NDArray[np.int64], max_parallelism: int, parallelism: int) -> NDArray[np.int64]:
    """The same for integers of 64 bits."""
    if len(keys) and keys.min() > -_HASH_MODULUS and keys.max() < _HASH_MODULUS:
        hashes = np.where(keys == -1, -2, keys)  # As in Python, where a hash of -1 signals an error.
    else:
        hashes = np.array(list(map(hash, keys.tolist())), dtype=np.int64)
    return _owners(_folded(hashes), max_parallelism, parallelism)


_HASH_MODULUS = sys.hash_info.modulus
"""An integer that is smaller than this, in absolute value, is its own hash; -1 is the only exception."""


def _owners(codes: _Codes, max_parallelism: int, parallelism: int) -> NDArray[np.int64]:
    by_group = np.arange(max_parallelism) * parallelism // max_parallelism
    owners: NDArray[np.int64] = by_group[_murmur_mix(codes) % np.uint32(max_parallelism)]
    return owners


def _hash_codes(keys: list[Any]) -> _Codes:
    if set(map(type, keys)) == {int}:
        return _folded(np.array(list(map(hash, keys)), dtype=np.int64))
    return np.array(list(map(stable_hash, keys)), dtype=np.uint32)


def _folded(hashes: NDArray[np.int64]) -> _Codes:
    return (hashes ^ (hashes >> 32)).astype(np.uint32)


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
