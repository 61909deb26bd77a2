"""All kinds of keyed state against a model: random use, snapshots, restores, changes of parallelism and of backend."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from state_cluster import BACKENDS, Cluster
from state_model import KINDS

from penstock.datastream.window import TimeWindow
from penstock.runtime.state.table import VOID_NAMESPACE, Extent

MERGEABLE = ("list", "reducing", "aggregating")

keys = st.sampled_from(["a", "b", "c", 1, 1 << 32, 2.5, ("x", 1), None, TimeWindow(1, 2)])  # 1 and 1 << 32: one hash
namespaces = st.sampled_from([VOID_NAMESPACE, "n", TimeWindow(0, 10)])
map_keys = st.sampled_from(["p", "q", 1, 1 << 32, ("y",), 7])
numbers = st.integers(1, 1000)
backends = st.sampled_from(sorted(BACKENDS))
uses = st.one_of(
    st.tuples(st.just("use"), st.sampled_from(KINDS), namespaces, keys, st.integers(0, 6), map_keys, numbers),
    st.tuples(st.just("merge"), st.sampled_from(MERGEABLE), namespaces, namespaces, keys),
)
steps = st.one_of(
    uses,
    uses,
    uses,
    st.tuples(st.just("wait"), st.integers(0, 8)),
    st.tuples(st.just("snapshot"), st.sampled_from(Extent)),
    st.tuples(st.just("restore"), st.sampled_from([1, 3, 2]), backends),
)


def use_value(cluster: Cluster, place: Any, action: int, number: int) -> None:
    state, model = cluster.state(place), cluster.model
    if action < 3:
        assert state.value() == model.read(place).get(0)
    elif action < 6:
        state.update([number])
        model.replace(place, {0: [number]})
    else:
        state.clear()
        model.replace(place, {})


def use_list(cluster: Cluster, place: Any, action: int, number: int) -> None:
    state, model = cluster.state(place), cluster.model
    if action < 2:
        assert list(state.get()) == list(model.read(place).values())
    elif action < 4:
        state.add(number)
        model.append(place, [number])
    elif action == 4:
        state.add_all([number, number + 1])
        model.append(place, [number, number + 1])
    else:
        new = [] if action == 5 else [number]
        state.update(new)
        model.replace(place, dict(enumerate(new)))


def use_map(cluster: Cluster, place: Any, action: int, map_key: Any, number: int) -> None:
    state, model = cluster.state(place), cluster.model
    if action == 0:
        assert state.get(map_key) == model.read(place, [map_key]).get(map_key)
        assert (map_key in state) == (map_key in model.read(place, [map_key]))
    elif action == 1:
        assert dict(state.items()) == model.read(place)
        assert (state.is_empty(), set(state.keys())) == (not model.parts(place), set(model.parts(place)))
    elif action < 4:
        state.put(map_key, number)
        model.write(place, {map_key: number})
    elif action == 4:
        state.put_all({map_key: number, "more": number})
        model.write(place, {map_key: number, "more": number})
    elif action == 5:
        state.remove(map_key)
        model.remove(place, map_key)
    else:
        state.clear()
        model.replace(place, {})


def use_sum(cluster: Cluster, place: Any, action: int, number: int) -> None:
    state, model = cluster.state(place), cluster.model
    if action < 2:
        assert state.get() == model.read(place).get(0)
    elif action < 6:
        state.add(number)
        model.replace(place, {0: model.parts(place).get(0, 0) + number})
    else:
        state.clear()
        model.replace(place, {})


def use(cluster: Cluster, kind: str, namespace: Any, key: Any, action: int, map_key: Any, number: int) -> None:
    place = (kind, namespace, key)
    if kind == "map":
        use_map(cluster, place, action, map_key, number)
    else:
        {"value": use_value, "list": use_list}.get(kind, use_sum)(cluster, place, action, number)


def take(cluster: Cluster, step: tuple[Any, ...]) -> None:
    match step:
        case ("use", *arguments):
            use(cluster, *arguments)
        case ("merge", kind, source, target, key) if source != target:
            cluster.merge((kind, source, key), (kind, target, key))
            cluster.model.move((kind, source, key), (kind, target, key))
        case ("wait", passed):
            cluster.model.now += passed
        case ("snapshot", extent):
            cluster.snapshot(extent)
        case ("restore", parallelism, backend):
            cluster.restore(parallelism, BACKENDS[backend])


def check_everything(cluster: Cluster) -> None:
    for place in list(cluster.model.states):
        kind, parts = place[0], cluster.model.parts(place)
        state = cluster.state(place)
        if kind == "map":
            assert dict(state.items()) == parts
        elif kind == "list":
            assert list(state.get()) == list(parts.values())
        else:
            assert (state.value() if kind == "value" else state.get()) == parts.get(0)


@pytest.mark.parametrize("ttl", [None, "write", "read"])
@settings(max_examples=150)
@given(backends, st.lists(steps, max_size=80))
def test_state_follows_the_model_over_snapshots_restores_and_rescaling(ttl, backend, all_steps):
    cluster = Cluster(ttl, BACKENDS[backend])
    try:
        cluster.snapshot(Extent.ALL)
        for step in all_steps:
            event(step[0])
            take(cluster, step)
        check_everything(cluster)
        if ttl is None:
            assert len(cluster) == sum(1 for parts in cluster.model.states.values() if parts)
        cluster.snapshot(Extent.CHANGES)
        cluster.restore(3, BACKENDS["disk, few entries in memory"])
        check_everything(cluster)
    finally:
        cluster.close()


@pytest.mark.parametrize("seed", range(6))
def test_state_follows_the_model_over_a_long_time(seed):
    """Large maps, and more entries than memory has room for, come about only after many steps."""
    random = Random(seed)
    ttl = [None, "write", "read"][seed % 3]
    cluster = Cluster(ttl, BACKENDS["disk, few entries in memory"])
    try:
        cluster.snapshot(Extent.ALL)
        for _ in range(1500):
            kind, namespace = random.choice(KINDS), random.choice([VOID_NAMESPACE, "n"])
            action, key, map_key = (
                random.choice([0, 1, 2, 3, 4, 5, 3, 3, 6]),
                random.randrange(20),
                random.randrange(60),
            )
            take(cluster, ("use", kind, namespace, key, action, map_key, random.randrange(1, 100)))
            if random.random() < 0.02:
                take(cluster, ("wait", random.randrange(6)))
                take(cluster, ("snapshot", random.choice(list(Extent))))
            if random.random() < 0.01:
                take(cluster, ("restore", random.choice([1, 2, 3]), random.choice(sorted(BACKENDS))))
        check_everything(cluster)
    finally:
        cluster.close()
