"""The two clocks of a machine, in milliseconds. `Moment` has both at once."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    """Milliseconds since 1970; may go back."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds since some point in the past; never goes back."""
    return time.monotonic_ns() // 1_000_000
