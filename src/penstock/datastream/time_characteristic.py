"""Which time `time_window` means."""

from __future__ import annotations

from enum import Enum


class TimeCharacteristic(Enum):
    PROCESSING_TIME = "PROCESSING_TIME"
    INGESTION_TIME = "INGESTION_TIME"
    EVENT_TIME = "EVENT_TIME"
