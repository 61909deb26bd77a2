"""What is remembered of checkpoints."""

from __future__ import annotations

from penstock.checkpoint.statistics import CheckpointStats, CheckpointStatsTracker, RestoredStats


def stats(number: int, **known) -> CheckpointStats:
    return CheckpointStats(number, 1000, 2, **known)


def test_new_tracker_knows_nothing():
    tracker = CheckpointStatsTracker()
    assert tracker.counts() == {"restored": 0, "total": 0, "in_progress": 0, "completed": 0, "failed": 0}
    assert tracker.history() == []
    assert tracker.latest_completed is tracker.latest_failed is tracker.latest_savepoint is tracker.restored is None


def test_checkpoint_is_counted_on_its_way():
    tracker = CheckpointStatsTracker()
    first, second = stats(1), stats(2)
    tracker.started(first)
    assert tracker.counts()["in_progress"] == 1
    tracker.completed(first)
    tracker.started(second)
    tracker.failed(second, "disk full", 2000)
    assert tracker.counts() == {"restored": 0, "total": 2, "in_progress": 0, "completed": 1, "failed": 1}
    assert (tracker.latest_completed, tracker.latest_failed) == (first, second)
    assert (second.status, second.failure_message, second.failure_timestamp_ms) == ("FAILED", "disk full", 2000)


def test_history_is_short_and_begins_with_the_newest():
    tracker = CheckpointStatsTracker(remembered=2)
    for number in (1, 2, 3):
        tracker.started(stats(number))
    assert [each.id for each in tracker.history()] == [3, 2]
    assert tracker.counts()["total"] == 3


def test_last_savepoint_is_known_besides_the_last_checkpoint():
    tracker = CheckpointStatsTracker()
    savepoint, checkpoint = stats(1, is_savepoint=True, savepoint_format="native"), stats(2)
    for each in (savepoint, checkpoint):
        tracker.started(each)
        tracker.completed(each)
    assert (tracker.latest_savepoint, tracker.latest_completed) == (savepoint, checkpoint)


def test_removed_checkpoints_are_marked():
    tracker = CheckpointStatsTracker()
    for number in (1, 2):
        tracker.started(stats(number))
    tracker.discarded([1])
    assert {each.id: each.discarded for each in tracker.history()} == {1: True, 2: False}


def test_summary_has_durations_and_sizes_of_the_completed():
    tracker = CheckpointStatsTracker()
    for number, (took_ms, size) in enumerate([(30, 100), (10, 200)]):
        each = stats(number, latest_ack_timestamp_ms=1000 + took_ms, state_size=size)
        tracker.started(each)
        tracker.completed(each)
    tracker.started(stats(9))
    summary = tracker.summary()
    assert (summary["end_to_end_duration"], summary["state_size"]) == ([30, 10], [100, 200])


def test_checkpoint_without_acknowledgements_took_no_time():
    assert stats(1).duration_ms == 0


def test_restored_checkpoint_is_known():
    tracker = CheckpointStatsTracker()
    restored = RestoredStats(7, 5000, True, "/here")
    tracker.restored_from(restored)
    assert (tracker.restored, tracker.counts()["restored"]) == (restored, 1)
