"""Decides how much a source reads in an epoch. Figures go in, a number of records comes out."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RECORDS = 2_000
MOST_GROWTH = 4


@dataclass
class EpochPace:
    """Aims at epochs of `target_ms`: a job that cannot keep up reads less at a time, and its source waits.

    An epoch that took too long makes the next one smaller; one that was over quickly although there was more to read
    makes it larger, by a factor of four at most. The first one is small: how long a record takes is not known yet. The
    fixed cost of an epoch is no reason to read less: it shows when a smaller one is not quicker.
    """

    target_ms: int
    most_records: int | None = None
    records: int = FIRST_RECORDS
    """The most that a subtask is to read in the next epoch."""

    def __post_init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._set(self.records)

    def epoch_completed(self, duration_ms: int, records: int, has_more: bool) -> None:
        """`records`: the most that any subtask has read; `has_more`: it could have read more."""
        if records == 0:
            return
        work_ms = self._work_ms(duration_ms, records)
        self._last = records, duration_ms
        fitting = records * self.target_ms // max(work_ms, 1)
        if work_ms > self.target_ms:
            self._set(max(fitting, records // MOST_GROWTH))
        elif has_more:
            self._set(min(max(fitting, self.records), self.records * MOST_GROWTH))

    def _work_ms(self, duration_ms: int, records: int) -> int:
        """The part of an epoch's time that depends on how much it read, judging from the last two."""
        last_records, last_ms = self._last or (records, duration_ms)
        if abs(records - last_records) < max(records, last_records) // MOST_GROWTH or records == last_records:
            return duration_ms
        work_ms = (duration_ms - last_ms) * records // (records - last_records)
        return min(max(work_ms, 0), duration_ms)

    def _set(self, records: int) -> None:
        self.records = max(1, records if self.most_records is None else min(records, self.most_records))
