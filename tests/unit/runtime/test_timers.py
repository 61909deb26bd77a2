from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import StateAccessError
from penstock.datastream.window import TimeWindow
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, Extent
from penstock.runtime.timers import InternalTimerService, KeyTimerQueue, TimerQueue, WindowKeyTimerQueue

keys = st.sampled_from("abc")
namespaces = st.sampled_from(["x", "y"])
times = st.integers(0, 20)
step = st.one_of(
    st.tuples(st.just("add"), times, keys, namespaces),
    st.tuples(st.just("remove"), times, keys, namespaces),
    st.tuples(st.just("fire"), times),
    st.tuples(st.just("restore")),
)


class Queue:
    """A timer queue with its backend, and what fired."""

    def __init__(self) -> None:
        self.backend = KeyedStateBackend("op")
        self.queue = TimerQueue(self.backend.table("timers"))
        self.fired: list[tuple[int, str, str]] = []

    def fire(self, time: int) -> list[tuple[int, str, str]]:
        self.fired = []

        def on_timer(timestamp, key, namespace) -> None:
            assert self.backend.current_key == key
            self.fired.append((timestamp, key, namespace))

        assert self.queue.fire_until(time, self.backend, on_timer) == len(self.fired)
        return self.fired

    def restore(self) -> None:
        """Continue in another process, from what was saved."""
        saved = [(name, copy.deepcopy(contents)) for name, contents in self.backend.snapshot(Extent.ALL)]
        self.backend = KeyedStateBackend("op")
        for name, contents in saved:
            self.backend.restore(name, contents)
        self.queue = TimerQueue(self.backend.table("timers"))
        self.queue.restore()


@given(st.lists(step, max_size=60))
def test_queue_does_what_a_set_of_timers_does(steps):
    queue, model = Queue(), set()
    for name, *arguments in steps:
        if name == "add":
            queue.queue.add(*arguments)
            model.add(tuple(arguments))
        elif name == "remove":
            queue.queue.remove(*arguments)
            model.discard(tuple(arguments))
        elif name == "restore":
            queue.restore()
        else:
            due = {timer for timer in model if timer[0] <= arguments[0]}
            fired = queue.fire(arguments[0])
            assert sorted(fired) == sorted(due)
            assert [timer[0] for timer in fired] == sorted(timer[0] for timer in fired)
            model -= due
        assert queue.queue.next_timestamp() == min((timer[0] for timer in model), default=None)
        for timer in model:
            assert queue.queue.contains(*timer)


quiet = st.one_of(
    st.tuples(st.sampled_from(["add", "remove"]), times, keys, st.integers(0, 2)),
    st.tuples(st.sampled_from(["fire", "take"]), times),
    st.tuples(st.just("add all"), st.lists(st.tuples(st.integers(0, 200), keys), max_size=80)),
    st.tuples(st.sampled_from(["fire", "take"]), st.integers(0, 200)),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("len")),
)
WINDOWS = [TimeWindow(0, 5), TimeWindow(0, 8), TimeWindow(3, 8)]


class QueueWithWindows(TimerQueue):
    def key_of(self, key, namespace):
        return key, namespace


class Recorded:
    """Timers in one kind of queue, and all that can be seen of them."""

    def __init__(self, kind, spaces) -> None:
        self.backend = KeyedStateBackend("op")
        self.queue = kind(self.backend.table("timers"))
        self.spaces = spaces

    def do(self, name, *arguments):
        queue = self.queue
        if name in ("add", "remove"):
            timer = (*arguments[:2], self.spaces[arguments[2]])
            getattr(queue, name)(*timer)
            return queue.contains(*timer), queue.next_timestamp()
        if name == "add all" and type(queue) is KeyTimerQueue:
            queue.add_all([time for time, _ in arguments[0]], [key for _, key in arguments[0]])
            return queue.next_timestamp()
        if name == "add all":
            for time, key in arguments[0]:
                queue.add(time, key, self.spaces[0])
            return queue.next_timestamp()
        if name == "take":
            return by_window(list(zip(*queue.take_until(*arguments), strict=True))), queue.next_timestamp()
        if name == "len":
            return len(self.backend), sorted(self.backend.tables["timers"].all_entries(), key=repr)
        if name == "snapshot":
            has_changes = self.backend.has_changes()
            saved = [copy.deepcopy(contents) for _, contents in self.backend.snapshot(Extent.CHANGES)]
            self.backend.snapshot_written(Extent.CHANGES)
            return has_changes, saved
        return self.fired(*arguments)

    def fired(self, time):
        """Each timer that fires deletes one, and sets another of the same time once."""
        seen: list = []

        def on_timer(timestamp, key, namespace) -> None:
            assert self.backend.current_key == key
            seen.append((timestamp, (key, namespace)))
            if key == "b":
                self.queue.remove(timestamp, "c", namespace)
                self.queue.add(timestamp + 3, "b", namespace)
            elif key == "a" and (timestamp, ("new", namespace)) not in seen:
                self.queue.add(timestamp, "new", namespace)

        count = self.queue.fire_until(time, self.backend, on_timer)
        return by_window(seen), count, self.queue.next_timestamp()


def by_window(fired):
    """The windows of one time may fire in any order; all else has one."""
    assert [time for time, _ in fired] == sorted(time for time, _ in fired)
    return sorted(fired, key=lambda timer: (timer[0], timer[1][1] if timer[1][1:] and timer[1][1] in WINDOWS else ()))


@pytest.mark.parametrize(
    ("kind", "reference", "spaces"),
    [(KeyTimerQueue, TimerQueue, [VOID_NAMESPACE] * 3), (WindowKeyTimerQueue, QueueWithWindows, WINDOWS)],
)
@given(st.lists(quiet, max_size=60))
def test_new_timers_that_are_kept_apart_are_not_told_from_others(kind, reference, spaces, steps):
    plain, apart = Recorded(reference, spaces), Recorded(kind, spaces)
    for each in steps:
        assert apart.do(*each) == plain.do(*each)


@given(st.lists(st.integers(0, 5), max_size=300))
def test_deleted_new_timers_leave_nothing(delays):
    queue = KeyTimerQueue(HeapStateTable("timers"))
    for at, delay in enumerate(delays):
        queue.add(at + delay, "a", VOID_NAMESPACE)
        queue.remove(at + delay, "a", VOID_NAMESPACE)
    assert len(queue._times) + len(queue._newest_times) <= 66 and not queue._new


def test_timer_set_twice_fires_once():
    queue = Queue()
    queue.queue.add(5, "a", "x")
    queue.queue.add(5, "a", "x")
    assert queue.fire(5) == [(5, "a", "x")]


def test_timer_set_while_firing_fires_if_it_is_due():
    queue = Queue()
    seen = []

    def on_timer(timestamp, key, namespace) -> None:
        seen.append(timestamp)
        if timestamp < 30:
            queue.queue.add(timestamp + 10, key, namespace)

    queue.queue.add(10, "a", "x")
    assert queue.queue.fire_until(25, queue.backend, on_timer) == 2
    assert seen == [10, 20]
    assert queue.queue.next_timestamp() == 30


def test_timer_deleted_by_another_that_fires_at_the_same_time_does_not_fire():
    queue = Queue()
    seen = []

    def on_timer(timestamp, key, namespace) -> None:
        seen.append(key)
        queue.queue.remove(timestamp, "a" if key == "b" else "b", namespace)

    queue.queue.add(5, "a", "x")
    queue.queue.add(5, "b", "x")
    queue.queue.fire_until(5, queue.backend, on_timer)
    assert len(seen) == 1


@given(st.lists(st.integers(0, 5), max_size=300))
def test_heap_does_not_grow_with_deleted_timers(delays):
    """A session window deletes a timer for every extension."""
    queue = TimerQueue(HeapStateTable("timers"))
    for at, delay in enumerate(delays):
        queue.add(at + delay, "a", "x")
        queue.remove(at + delay, "a", "x")
    assert len(queue._heap) <= 65


def test_service_refuses_timers_without_a_key():
    service = InternalTimerService("t", KeyedStateBackend("op"), print, print, lambda: 0)
    with pytest.raises(StateAccessError, match="operator 'op': keyed state was used where there is no current key"):
        service.register_event_time_timer("x", 5)


def test_service_keeps_the_two_times_apart():
    backend = KeyedStateBackend("op")
    fired = []
    service = InternalTimerService(
        "t", backend, lambda *at: fired.append(("event", *at)), lambda *at: fired.append(("clock", *at)), int
    )
    backend.current_key = "a"
    service.register_event_time_timer("x", 5)
    service.register_processing_time_timer("x", 5)
    service.register_event_time_timer("x", 6)
    service.delete_event_time_timer("x", 6)
    assert service.advance_watermark(10) == 1
    assert fired == [("event", 5, "a", "x")]
    assert service.advance_processing_time(10) == 1
    assert fired == [("event", 5, "a", "x"), ("clock", 5, "a", "x")]
    assert service.current_watermark == 10
