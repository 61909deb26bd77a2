"""Where each entry of a table on disk is: a hash table whose columns are NumPy arrays in a memory-mapped file.

Many entries are looked up at a time, by the hashes of their keys, because a call for each would cost more than the
lookup. A slot belongs to the same hash for as long as the file exists. The owner of the index must handle different
keys with the same hash.

The leading bits of the mixed hash give the home slot. If that is taken, the next free slot is used. So slots are in the
order of mixed hashes, up to small displacements, and a position in this order is still valid when the file has grown.

Every index mixes in its own way. A snapshot lists entries in the order of the slots of the index that wrote it. If the
index that loads it had the same order, the first part of the snapshot would fill the front of a table that is still
small, and finding a free slot there would take longer and longer.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.int64]
Slots = NDArray[np.intp]

_FIRST_BITS = 10
_SLACK = 1_024
"""Extra slots after the last home slot, so that a search for a free slot need not continue at the front."""
_MOST_USED = 0.6
_LARGE_BITS = 22
"""Smaller files grow fourfold instead of twofold, because moving entries is most of the cost of adding some."""
_MOVED_AT_ONCE = 1 << 18
_BYTES_PER_SLOT = 8 + 8 + 4 + 1
_FACTORS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xFF51AFD7ED558CCD))


class EntryIndex:
    """Columns `places`, `sizes` and `flags`, by slot. A slot whose flags are 0 has no entry."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._make(_FIRST_BITS)

    def _make(self, bits: int) -> None:
        slots = (1 << bits) + _SLACK
        self._bits, self._used = bits, 0
        self._files += 1
        columns = _mapped(self._folder / f"index-{self._files}", slots * _BYTES_PER_SLOT)
        self._codes: Hashes = np.frombuffer(columns, np.int64, slots)
        """The bitwise complements of the hashes; 0 for a free slot. No complement is 0, because no hash is -1."""
        self.places: NDArray[np.int64] = np.frombuffer(columns, np.int64, slots, 8 * slots)
        self.sizes: NDArray[np.uint32] = np.frombuffer(columns, np.uint32, slots, 16 * slots)
        self.flags: NDArray[np.uint8] = np.frombuffer(columns, np.uint8, slots, 20 * slots)

    def hashes(self, slots: Slots) -> Hashes:
        return ~self._codes[slots]

    # --- looking up ------------------------------------------------------------------------------------------------

    def find(self, hashes: Hashes) -> Slots:
        """The slot of each hash; -1 for a hash without a slot."""
        return self._find(~hashes)

    def _find(self, codes: Hashes) -> Slots:
        at = self._home(codes)
        held = self._codes[at]
        is_it = held == codes
        if is_it.all():
            return at
        slots: Slots = np.where(is_it, at, -1)
        looking = np.flatnonzero(~is_it & (held != 0))
        at = at[looking] + 1
        while len(looking):
            held = self._codes[at]
            is_it = held == codes[looking]
            slots[looking[is_it]] = at[is_it]
            continues = ~is_it & (held != 0)
            looking, at = looking[continues], at[continues] + 1
        return slots

    def place(self, hashes: Hashes, are_new: bool = False) -> Slots:
        """The slot of each hash, which may be new. `are_new` speeds this up if nearly all hashes have no slot yet."""
        if self._used + len(hashes) > _MOST_USED * (1 << self._bits):
            self._make_room(len(hashes))
        codes = ~hashes
        slots: Slots = np.full(len(codes), -1, np.intp) if are_new else self._find(codes)
        is_new = slots < 0
        if is_new.any():
            added = self._place(codes[is_new])
            while added is None:  # The search reached the end of the file: too many hashes are close together.
                self._rebuild(self._bits + 1)
                slots = self._find(codes)
                added = self._place(codes[is_new])
            slots[is_new] = added
        return slots

    def _place(self, codes: Hashes) -> Slots | None:
        at = self._home(codes)
        slots: Slots = at.copy()
        looking = np.arange(len(codes))
        while len(looking):
            wanted = codes[looking]
            held = self._codes[at]
            is_free = held == 0
            self._codes[at[is_free]] = wanted[is_free]  # If several hashes want the same slot, one gets it.
            is_it = self._codes[at] == wanted
            self._used += int(np.count_nonzero(is_it & is_free))
            slots[looking[is_it]] = at[is_it]
            looking, at = looking[~is_it], at[~is_it] + 1
            if len(at) and at.max() >= len(self._codes) - 1:
                return None
        return slots

    def _home(self, codes: Hashes) -> Slots:
        home: Slots = (self._mixed(codes) >> np.uint64(64 - self._bits)).astype(np.intp)
        return home

    def _mixed(self, codes: Hashes) -> NDArray[np.uint64]:
        """Spreads hashes over all 64-bit numbers. The hash of a small integer is the integer itself."""
        mixed: NDArray[np.uint64] = codes.view(np.uint64) ^ self._seed
        # One multiplication is not enough: it leaves the order of nearby hashes as it is, whatever the seed.
        for factor in _FACTORS:
            mixed ^= mixed >> np.uint64(32)
            mixed *= factor  # The high bits are used, and they depend on all others.
        return mixed

    # --- growing ---------------------------------------------------------------------------------------------------

    def _make_room(self, new: int) -> None:
        bits = self._bits
        while np.count_nonzero(self.flags) + new > _MOST_USED / 1.5 * (1 << bits):
            bits += 1
        self._rebuild(bits if bits >= _LARGE_BITS else bits + 1)

    def _rebuild(self, bits: int) -> None:
        """Move to a new file with 2 ** bits home slots. Slots without entries are left behind."""
        old_file = self._folder / f"index-{self._files}"
        codes, places, sizes, flags = self._codes, self.places, self.sizes, self.flags
        self._make(bits)
        for start in range(0, len(codes), _MOVED_AT_ONCE):
            moved = start + np.flatnonzero(flags[start : start + _MOVED_AT_ONCE])
            slots = self._place(codes[moved])
            if slots is None:
                self._codes, self.places, self.sizes, self.flags = codes, places, sizes, flags
                os.unlink(self._folder / f"index-{self._files}")
                self._rebuild(bits + 1)
                break
            self.places[slots], self.sizes[slots], self.flags[slots] = places[moved], sizes[moved], flags[moved]
        old_file.unlink(missing_ok=True)

    # --- all slots -------------------------------------------------------------------------------------------------

    def with_flags(self, test: Callable[[NDArray[np.uint8]], NDArray[np.bool_]]) -> Iterator[Slots]:
        """The slots whose flags pass a test, in parts."""
        for start in range(0, len(self.flags), _MOVED_AT_ONCE):
            slots = start + np.flatnonzero(test(self.flags[start : start + _MOVED_AT_ONCE]))
            if len(slots):
                yield slots

    def some(self, position: int, number: int) -> tuple[Slots, int | None]:
        """About `number` slots from a position in the order of mixed hashes, and the position of the next ones.

        The first position is 0, and None means that there are no more slots. Positions stay valid when the file grows.
        """
        shift = 64 - self._bits
        begin = position >> shift
        end = begin + number
        while end < len(self._codes) and self._codes[end] != 0:
            end += 1  # Hashes with a home slot before the end may be in later slots, up to the next free one.
        slots = begin + np.flatnonzero(self.flags[begin:end])
        slots = slots[self._mixed(self._codes[slots]) >= np.uint64(position)]
        return slots, end << shift if end < 1 << self._bits else None


def _mapped(path: Path, size: int) -> mmap.mmap:
    """A new memory-mapped file of zeros. Its space is allocated at once, so that a full disk is an error here.

    Otherwise writing to a mapped page could kill the process.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            for start in range(0, size, 1 << 20):
                os.pwrite(file, bytes(min(1 << 20, size - start)), start)
        return mmap.mmap(file, size)
    finally:
        os.close(file)
