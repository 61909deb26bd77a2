"""Watermark alignment: how far the sources of a group may read, so that none gets far ahead of the others."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

from penstock.common.watermark_strategy import WatermarkAlignment


class AlignmentGroups:
    """The watermarks of all aligned source subtasks of a job, by group. Sources of several regions share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watermarks: defaultdict[str, dict[tuple[str, int], int]] = defaultdict(dict)

    def report(self, alignment: WatermarkAlignment, source: str, watermarks: Mapping[int, int | None]) -> None:
        """What subtasks of a source have reached; None for one that nobody is to wait for: idle, or at its end."""
        with self._lock:
            known = self._watermarks[alignment.group]
            for subtask, watermark in watermarks.items():
                if watermark is None:
                    known.pop((source, subtask), None)
                else:
                    known[source, subtask] = watermark

    def forget(self, alignment: WatermarkAlignment, source: str) -> None:
        """The source begins again from a checkpoint."""
        with self._lock:
            known = self._watermarks[alignment.group]
            for each in [each for each in known if each[0] == source]:
                del known[each]

    def limit(self, alignment: WatermarkAlignment) -> int | None:
        """A subtask whose watermark is beyond this must wait; None while nothing is known."""
        with self._lock:
            known = self._watermarks[alignment.group]
            return min(known.values()) + alignment.max_allowed_drift_ms if known else None
