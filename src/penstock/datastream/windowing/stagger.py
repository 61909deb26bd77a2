"""Spreads the moments at which the subtasks of one window operator fire."""

from __future__ import annotations

import random
from enum import Enum

from penstock.datastream.windowing.windows import TimeWindow


class WindowStagger(Enum):
    """How far each subtask shifts its tumbling windows; settled at a subtask's first element and kept with its state.

    ALIGNED: not at all. RANDOM: by a random part of the window size. NATURAL: so that windows begin at the clock time
    of the subtask's first element.

    >>> from penstock.common import Time
    >>> from penstock.datastream.window import TumblingProcessingTimeWindows
    >>> str(TumblingProcessingTimeWindows.of(Time.minutes(1), Time.seconds(0), WindowStagger.RANDOM).window_stagger)
    'RANDOM'
    """

    ALIGNED = "ALIGNED"
    RANDOM = "RANDOM"
    NATURAL = "NATURAL"

    def get_stagger_offset(self, current_processing_time: int, size: int) -> int:
        """The shift in milliseconds for windows of `size` milliseconds."""
        if self is WindowStagger.RANDOM:
            return int(random.random() * size)
        if self is WindowStagger.NATURAL:
            return current_processing_time - TimeWindow.get_window_start_with_offset(current_processing_time, 0, size)
        return 0

    def __str__(self) -> str:
        return self.name
