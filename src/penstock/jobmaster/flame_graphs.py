"""Flame graphs of a job's vertices: what their threads were seen doing while a client asked."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from penstock.runtime.protocol import TaskAck
from penstock.runtime.stack_sampler import Stack

_WANTED_MS = 30_000
"""For how long one question keeps the sampling of a vertex going."""
_MOST_STACKS = 5_000


@dataclass
class _Samples:
    wanted_until_ms: int
    counts: dict[Stack, int] = field(default_factory=dict)
    ended_ms: int = 0


class FlameGraphs:
    """A question about a vertex has it sampled for a while; the answer is what was seen so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_vertex: dict[int, _Samples] = {}

    def ask(self, vertex: int, now_ms: int) -> dict[str, Any]:
        """The tree as Flink shows it; starts over when nobody has asked for a while."""
        with self._lock:
            samples = self._by_vertex.get(vertex)
            if samples is None or samples.wanted_until_ms < now_ms:
                samples = self._by_vertex[vertex] = _Samples(now_ms, ended_ms=now_ms)
            samples.wanted_until_ms = now_ms + _WANTED_MS
            return {"endTimestamp": samples.ended_ms, "data": _tree(samples.counts)}

    def wanted(self, now_ms: int) -> frozenset[int]:
        """The vertices to sample."""
        if not self._by_vertex:
            return frozenset()
        with self._lock:
            return frozenset(vertex for vertex, each in self._by_vertex.items() if each.wanted_until_ms >= now_ms)

    def add(self, ack: TaskAck) -> None:
        if not ack.stacks:
            return
        with self._lock:
            samples = self._by_vertex.get(ack.vertex)
            if samples is None:
                return
            samples.ended_ms = ack.ended_ms
            for stack, count in ack.stacks.items():
                if stack in samples.counts or len(samples.counts) < _MOST_STACKS:
                    samples.counts[stack] = samples.counts.get(stack, 0) + count


def _tree(counts: dict[Stack, int]) -> dict[str, Any]:
    root: dict[str, Any] = {"name": "root", "value": 0, "children": {}}
    for stack, count in counts.items():
        node = root
        node["value"] += count
        for name in stack:
            node = node["children"].setdefault(name, {"name": name, "value": 0, "children": {}})
            node["value"] += count
    return _listed(root)


def _listed(node: dict[str, Any]) -> dict[str, Any]:
    children = sorted(node["children"].values(), key=lambda child: -child["value"])
    return {"name": node["name"], "value": node["value"], "children": [_listed(child) for child in children]}
