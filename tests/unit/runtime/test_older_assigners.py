"""Assigners that remember what they have seen, in several subtasks and after a restart."""

from __future__ import annotations

import pickle

import pytest

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import AssignerWithPeriodicWatermarks
from penstock.graph.descriptions import WatermarksDescription
from penstock.testing import OperatorHarness


class LatestSeen(AssignerWithPeriodicWatermarks):
    def __init__(self):
        self.latest = None

    def extract_timestamp(self, value, record_timestamp):
        self.latest = value if self.latest is None else max(self.latest, value)
        return value

    def get_current_watermark(self):
        return self.latest


def strategies():
    plain = WatermarkStrategy.for_assigner(LatestSeen())
    return [plain, plain.with_idleness(Duration.of_minutes(5))]


@pytest.mark.parametrize("strategy", strategies(), ids=["plain", "idleness"])
def test_every_subtask_has_its_own_assigner(strategy):
    description = WatermarksDescription(strategy)
    one, other = (OperatorHarness(description, subtask=subtask, parallelism=2) for subtask in range(2))
    one.feed([(1000, None)])
    other.feed([(9, None)])
    assert one.processing_time(200).watermarks == [1000]
    assert other.processing_time(200).watermarks == [9]


@pytest.mark.parametrize("strategy", strategies(), ids=["plain", "idleness"])
def test_watermarks_continue_after_a_restart(strategy):
    description = WatermarksDescription(strategy)
    before = OperatorHarness(description).feed([(1000, None)]).processing_time(200)
    assert before.watermarks == [1000]
    after = OperatorHarness(description, restored=pickle.loads(pickle.dumps(before.snapshot())))
    assert after.feed([(7, None), (2000, None)]).processing_time(400).watermarks[-1] == 2000
