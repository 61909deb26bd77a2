"""What becomes of elements that a sink cannot write: they fail the job, are counted and skipped, or go elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.datastream.functions import ProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.metrics import MetricGroup

__all__ = ["DeadLetters", "OnRefused"]

REFUSED_METRIC = "numRecordsSendErrors"
"""Flink's name for the metric that counts them."""

_log = logging.getLogger(__name__)


class OnRefused(Enum):
    """What a sink does with an element that its serializer refuses, or that its target refuses for good."""

    FAIL = "fail"
    """The job fails, and a restart meets the element again."""

    SKIP = "skip"
    """The element is left out and counted in the metric `numRecordsSendErrors`; the first one is logged."""


class RefusedRecords:
    """The elements that one writer could not write."""

    def __init__(self, policy: OnRefused, metrics: MetricGroup, sink: str) -> None:
        self._skips = policy is OnRefused.SKIP
        self._counter = metrics.counter(REFUSED_METRIC)
        self._sink = sink

    def add(self, element: Any, reason: BaseException) -> None:
        """Raise the reason, or count the element."""
        if not self._skips:
            raise reason
        if self._counter.get_count() == 0:
            _log.warning("%s: skips %.200r and others that it cannot write: %s", self._sink, element, reason)
        self._counter.inc()


class DeadLetters(ProcessFunction):
    """Passes on the elements that a schema can serialize; others go to a side output as (element, reason).

    Put it in front of a sink that uses the same schema::

        checked = stream.process(DeadLetters(schema, REFUSED))
        checked.sink_to(sink)
        checked.get_side_output(REFUSED).sink_to(elsewhere)
    """

    def __init__(self, schema: SerializationSchema, refused: OutputTag) -> None:
        # A Kafka schema also makes keys and headers and chooses a topic.
        self._try: Callable[[Any], object] = getattr(schema, "to_record", schema.serialize)
        self._refused = refused

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        try:
            self._try(value)
        except Exception as reason:  # Whatever a schema raises is its way to refuse.
            yield self._refused, (value, f"{type(reason).__name__}: {reason}")
        else:
            yield value
