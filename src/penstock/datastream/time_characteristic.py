"""Which time `time_window` means."""

from __future__ import annotations

from enum import Enum


class TimeCharacteristic(Enum):
    """What `time_window` and `time_window_all` mean by time: the clock, or the elements' timestamps.

    >>> env.set_stream_time_characteristic(TimeCharacteristic.EventTime).get_stream_time_characteristic().name
    'EVENT_TIME'
    """

    PROCESSING_TIME = "PROCESSING_TIME"
    INGESTION_TIME = "INGESTION_TIME"
    EVENT_TIME = "EVENT_TIME"

    # The same under the names of Flink 1.x.
    ProcessingTime = PROCESSING_TIME
    IngestionTime = INGESTION_TIME
    EventTime = EVENT_TIME
