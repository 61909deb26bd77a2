"""What happens to records that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.common.exceptions import JobExecutionError
from penstock.datastream.connectors.source_v2 import ReaderOutput, SourceReaderContext
from penstock.datastream.output_tag import OutputTag
from penstock.metrics import Counter

__all__ = ["BadRecord", "BadRecords"]

_SHOWN = 200


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be read: what it is, why, and where it comes from.

    `BadRecords` has an example.
    """

    raw: bytes
    error: str
    origin: str


@dataclass(frozen=True)
class BadRecords:
    """What a source does with a record that its format or schema cannot read.

    >>> BadRecords.to_side_output(OutputTag("unreadable")).kind
    'side output'
    """

    kind: Literal["fail", "skip", "side output"]
    tag: OutputTag | None = None

    @staticmethod
    def fail() -> BadRecords:
        """The job fails, and the error shows the record. This is the default of sources."""
        return BadRecords("fail")

    @staticmethod
    def skip() -> BadRecords:
        """The record is left out, and counted by the source's metric `numRecordsInErrors`."""
        return BadRecords("skip")

    @staticmethod
    def to_side_output(tag: OutputTag) -> BadRecords:
        """The record goes, as a `BadRecord`, to a side output of the source, and is counted as well."""
        if not isinstance(tag, OutputTag):
            raise TypeError(f"BadRecords.to_side_output needs an OutputTag, got {tag!r}")
        return BadRecords("side output", tag)


class BadRecordHandler:
    """Does in one reader what the source says about bad records."""

    def __init__(self, choice: BadRecords, context: SourceReaderContext) -> None:
        self._choice = choice
        self._count: Counter = context.metric_group().counter("numRecordsInErrors")

    @property
    def fails(self) -> bool:
        """True if a bad record fails the job."""
        return self._choice.kind == "fail"

    def take(self, bad: BadRecord, output: ReaderOutput) -> None:
        """Handle one bad record; raises if it fails the job."""
        if self.fails:
            shown = bad.raw if len(bad.raw) <= _SHOWN else bad.raw[:_SHOWN] + b"..."
            raise JobExecutionError(
                f"{bad.origin}: cannot read {shown!r}: {bad.error}; set_bad_records(BadRecords.skip()) leaves such "
                f"records out, BadRecords.to_side_output(tag) keeps them apart"
            )
        self._count.inc()
        if self._choice.tag is not None:
            output.output(self._choice.tag, bad)
