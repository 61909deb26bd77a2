"""The driver's side of a Source: its enumerator, and what is on its way to the readers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common import config_keys as keys
from penstock.common.exceptions import JobExecutionError
from penstock.common.watermark_strategy import WatermarkAlignment
from penstock.datastream.connectors.source_v2 import Boundedness, Source, SplitEnumerator, SplitEnumeratorContext
from penstock.jobmaster.execution.async_calls import AsyncCalls
from penstock.jobmaster.execution.stage_executor import EpochCancelledError
from penstock.jobmaster.region.epoch_pace import EpochPace
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.runtime.source_reading import ReadOrder
from penstock.runtime.sources import SourceAssignment, SourceReport
from penstock.runtime.state.codec import decode_state, encode_state

_log = logging.getLogger(__name__)
_CANCEL_POLL_S = 0.1


@dataclass(frozen=True)
class SplitPosition:
    """What a checkpoint keeps of the enumerator. The splits that readers have are in the state of the readers."""

    checkpoint_id: int
    enumerator: bytes
    """What the enumerator's `snapshot_state` gave."""
    waiting: bytes
    """Splits that were assigned but not sent yet, by subtask."""
    ended: frozenset[int]
    """Subtasks that know that there are no more splits."""
    is_over: bool = False
    """True if the source has ended: readers of another job that continues from here only learn of the end."""


@dataclass
class _Parcel:
    """What goes to one reader with the next epoch."""

    splits: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)


class _EnumeratorContext(SplitEnumeratorContext[Any]):
    """What one enumerator has said. A new enumerator, after a failure, gets a new context."""

    def __init__(self, setup: SourceSetup, call_async: Callable[..., None]) -> None:
        self._setup = setup
        self._call_async = call_async
        self.readers: set[int] = set()
        self.parcels: dict[int, _Parcel] = {}
        self.complete: set[int] = set()
        """Readers that get no more splits."""
        self.has_news = False
        """True if something new waits to be sent to a reader."""

    def current_parallelism(self) -> int:
        return self._setup.parallelism

    def registered_readers(self) -> frozenset[int]:
        return frozenset(self.readers)

    def assign_split(self, split: Any, subtask_id: int) -> None:
        self.assign_splits({subtask_id: [split]})

    def assign_splits(self, assignment: dict[int, list[Any]]) -> None:
        for subtask, splits in assignment.items():
            self._check(subtask)
            if subtask in self.complete:
                raise ValueError(
                    f"splits were assigned to reader {subtask} after signal_no_more_splits({subtask}); signal only "
                    f"when nothing is left"
                )
            self._parcel(subtask).splits.extend(splits)

    def signal_no_more_splits(self, subtask_id: int) -> None:
        self._check(subtask_id)
        self.complete.add(subtask_id)
        self.has_news = True

    def send_event_to_source_reader(self, subtask_id: int, event: Any) -> None:
        self._check(subtask_id)
        self._parcel(subtask_id).events.append(event)

    def call_async(
        self,
        callable: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        self._call_async(callable, handler, initial_delay_ms, period_ms)

    def get_storage_folder(self) -> str:
        return self._setup.storage

    def _parcel(self, subtask: int) -> _Parcel:
        self.has_news = True
        return self.parcels.setdefault(subtask, _Parcel())

    def _check(self, subtask: int) -> None:
        if not 0 <= subtask < self._setup.parallelism:
            raise ValueError(f"there is no reader {subtask}; there are {self._setup.parallelism}, numbered from 0")


class SplitSourceCoordinator:
    """One Source of a job.

    The enumerator is called by the job's thread, and by the thread that makes its asynchronous calls; the lock keeps
    them apart. `has_work` and `check` do not take it, because they are asked while the job is locked.
    """

    def __init__(
        self, source: Source[Any, Any, Any], setup: SourceSetup, alignment: WatermarkAlignment | None = None
    ) -> None:
        self._source = source
        self._setup = setup
        self._alignment = None if setup.is_batch else alignment
        self._pace = EpochPace(setup.config.get(keys.EPOCH_TARGET_DURATION), setup.max_records)
        self._idle_poll_ms = setup.config.get(keys.SOURCE_IDLE_POLL_INTERVAL)
        self._changed = threading.Condition()
        self._restored: SplitPosition | None = None
        self._enumerator: SplitEnumerator[Any, Any] | None = None
        self._failure: JobExecutionError | None = None
        self._checkpoint_id = 0
        self._ended: set[int] = set()
        self._is_over = False
        self._at_end: set[int] = set()
        self._is_fresh = True
        """True until the readers were started by a first epoch."""

    # --- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        with self._changed, self._user_code():
            self._open(self._restored)

    def restore(self, position: Any, is_exact: bool) -> None:
        self._restored = position if is_exact else replace(position, ended=frozenset())

    def rewind(self, position: Any) -> None:
        with self._changed, self._user_code():
            self._close()
            self._failure = None
            self._open(position)

    def stop(self) -> None:
        with self._changed:
            try:
                self._close()
            except Exception:  # The job is over: what cannot be closed does not change its result.
                _log.warning("source '%s': its enumerator could not be closed", self._setup.name, exc_info=True)

    def _open(self, position: SplitPosition | None) -> None:
        if self._alignment is not None:
            self._setup.alignment_groups.forget(self._alignment, self._setup.operator_id)
        self._calls = AsyncCalls(f"source '{self._setup.name}'")
        self._context = context = _EnumeratorContext(self._setup, self._call_async)
        self._at_end = set()
        self._ended = set() if position is None else set(position.ended)
        self._is_over = position is not None and position.is_over
        self._is_fresh = True
        if position is None:
            self._enumerator = enumerator = self._source.create_enumerator(context)
        else:
            known = decode_state(position.enumerator)
            self._enumerator = enumerator = self._source.restore_enumerator(context, known)
            for subtask, splits in decode_state(position.waiting).items():
                enumerator.add_splits_back(splits, subtask)
        enumerator.start()
        for subtask in self._readers():
            context.readers.add(subtask)
            enumerator.add_reader(subtask)

    def _close(self) -> None:
        enumerator, self._enumerator = self._enumerator, None
        if enumerator is not None:
            self._calls.close()
            enumerator.close()

    @property
    def enumerator(self) -> SplitEnumerator[Any, Any]:
        assert self._enumerator is not None, "the source is not started"
        return self._enumerator

    @contextmanager
    def _user_code(self) -> Iterator[None]:
        try:
            yield
        except EpochCancelledError:
            raise
        except Exception as failure:
            raise self._setup.error_of(failure) from failure

    def _readers(self) -> list[int]:
        return [subtask for subtask in range(self._setup.parallelism) if subtask not in self._ended]

    # --- epochs ----------------------------------------------------------------------------------------------------

    def has_work(self) -> bool:
        return not self.is_exhausted and (self._is_fresh or self._context.has_news or bool(self._at_end))

    def plan(self, epoch: int, is_checkpoint: bool) -> dict[int, SourceAssignment]:
        with self._changed, self._user_code():
            self._checkpoint_id = epoch
            if self._is_over:
                return self._ending()
            if self._setup.is_batch:
                self._enumerate_all()
            planned = {subtask: self._planned(subtask) for subtask in self._readers()}
            self._ended |= {subtask for subtask, assignment in planned.items() if assignment.is_last}
            self._at_end -= self._ended
            self._context.parcels.clear()
            self._context.has_news = False
            self._is_fresh = False
            return planned

    def _planned(self, subtask: int) -> SourceAssignment:
        parcel = self._context.parcels.get(subtask, _Parcel())
        order = ReadOrder(
            tuple(parcel.splits),
            subtask in self._context.complete,
            tuple(parcel.events),
            None if self._setup.is_batch else self._pace.records,
            self._pace.target_ms,
            self._idle_poll_ms,
            max_watermark=None if self._alignment is None else self._setup.alignment_groups.limit(self._alignment),
            aligned_every_ms=0 if self._alignment is None else self._alignment.update_interval_ms,
        )
        return SourceAssignment(order, self._setup.is_batch or subtask in self._at_end)

    def _enumerate_all(self) -> None:
        """A batch job is one epoch: ask for splits on behalf of the readers until there are none left."""
        while missing := [subtask for subtask in self._readers() if subtask not in self._context.complete]:
            self._context.has_news = False
            for subtask in missing:
                self.enumerator.handle_split_request(subtask, None)
            while not self._context.has_news:
                if not self._calls.has_single_calls():
                    raise JobExecutionError(
                        f"source '{self._setup.name}': {type(self.enumerator).__name__} neither assigned a split to "
                        f"reader {missing[0]} nor signalled that there are no more; in batch mode every request must "
                        f"be answered"
                    )
                if self._setup.is_cancelled():
                    raise EpochCancelledError
                self._changed.wait(_CANCEL_POLL_S)

    def end(self, epoch: int) -> dict[int, SourceAssignment]:
        with self._changed:
            self._checkpoint_id = epoch
            return self._ending()

    def _ending(self) -> dict[int, SourceAssignment]:
        readers = self._readers()
        self._ended |= set(readers)
        return {subtask: SourceAssignment(ReadOrder(reads=False), True) for subtask in readers}

    def suspend(self, epoch: int) -> dict[int, SourceAssignment]:
        """Readers stay where they are."""
        with self._changed:
            self._checkpoint_id = epoch
        return {}

    def resume(self) -> None:
        """Readers were not held back."""

    def epoch_complete(self, reports: Mapping[int, SourceReport], duration_ms: int) -> None:
        with self._changed, self._user_code():
            for subtask, report in reports.items():
                self._take(subtask, report)
        self._report_watermarks(reports)
        read = [report.records for report in reports.values()]
        self._pace.epoch_completed(
            duration_ms, max(read, default=0), any(report.has_more for report in reports.values())
        )

    def _report_watermarks(self, reports: Mapping[int, SourceReport]) -> None:
        if self._alignment is not None:
            reached = {
                subtask: None if subtask in self._ended or report.is_at_end else report.watermark
                for subtask, report in reports.items()
            }
            self._setup.alignment_groups.report(self._alignment, self._setup.operator_id, reached)

    def _take(self, subtask: int, report: SourceReport) -> None:
        for event in report.decoded_events():
            self.enumerator.handle_source_event(subtask, event)
        for _ in range(report.requests):
            if subtask not in self._context.complete:
                self.enumerator.handle_split_request(subtask, report.host)
        if report.is_at_end and subtask not in self._ended:
            self._at_end.add(subtask)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    @property
    def position(self) -> SplitPosition:
        with self._changed, self._user_code():
            waiting = {subtask: parcel.splits for subtask, parcel in self._context.parcels.items() if parcel.splits}
            return SplitPosition(
                self._checkpoint_id,
                encode_state(self.enumerator.snapshot_state(self._checkpoint_id)),
                encode_state(waiting),
                frozenset(self._ended),
                self._is_over or self.is_exhausted,
            )

    def checkpoint_complete(self, position: Any) -> None:
        with self._changed, self._user_code():
            self.enumerator.notify_checkpoint_complete(position.checkpoint_id)

    @property
    def is_exhausted(self) -> bool:
        return len(self._ended) == self._setup.parallelism

    def share_read(self) -> float | None:
        enumerator = self._enumerator
        if self.is_exhausted:
            return 1.0
        is_bounded = self._source.get_boundedness() is Boundedness.BOUNDED
        return enumerator.share_read() if is_bounded and enumerator is not None else None

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- asynchronous calls ----------------------------------------------------------------------------------------

    def _call_async(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, BaseException | None], None],
        delay_ms: int,
        period_ms: int | None,
    ) -> None:
        context = self._context

        def done(result: Any, error: BaseException | None) -> None:
            with self._changed:
                if context is not self._context or self._enumerator is None:
                    return  # It was asked for by an enumerator that is gone.
                try:
                    handler(result, error)
                except (Exception, SystemExit) as failure:  # Reported to the job by `check`: nothing else would.
                    self._failure = self._setup.error_of(failure)
                self._changed.notify_all()
            if context.has_news or self._failure is not None:
                self._setup.on_change()

        self._calls.add(call, done, delay_ms, period_ms)
