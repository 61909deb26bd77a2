"""Watermarks that are held back."""

from __future__ import annotations

from penstock.common.constants import MAX_LONG_VALUE
from penstock.graph.descriptions import WatermarkDelayDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator


class WatermarkDelayOperator(StreamOperator):
    """Passes elements on as they are, and watermarks with an earlier time. The last watermark stays what it is."""

    def __init__(self, description: WatermarkDelayDescription) -> None:
        self._delay_ms = description.delay_ms

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        self.output.collect_batch(batch.values, batch.timestamps)

    def process_watermark(self, watermark: int) -> None:
        self.current_watermark = watermark
        self.output.emit_watermark(watermark if watermark == MAX_LONG_VALUE else watermark - self._delay_ms)
