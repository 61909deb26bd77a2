"""The two kinds of time a timer can follow."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Says which clock a fired timer followed."""

    EVENT_TIME = 0
    """The timer fired because the watermark passed it."""

    PROCESSING_TIME = 1
    """The timer fired because the machine's clock passed it."""
