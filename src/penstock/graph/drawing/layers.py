"""A layered layout: boxes in layers along the flow, ordered so that few arrows cross, with places along each layer.

An arrow that skips layers gets a bend in every layer between, so that each piece joins neighbouring layers. Sizes and
centres are measured along the layer: widths for a drawing that flows down, heights for one that flows right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.common.exceptions import InvalidProgramError
from penstock.graph.drawing.picture import Arrow, Picture

SWEEPS = 8


@dataclass(eq=False)
class Item:
    """A box (`box` is its index) or a bend of an arrow (`box` is None) and its centre along the layer."""

    box: int | None
    layer: int
    size: int
    center: int = 0
    above: list[Item] = field(default_factory=list)
    below: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Route:
    """An arrow and the items it passes: source box, bends, target box."""

    arrow: Arrow
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Layout:
    layers: tuple[tuple[Item, ...], ...]
    routes: tuple[Route, ...]


def arrange(picture: Picture, box_size: Callable[[int], int], bend_size: int, gap: int) -> Layout:
    """Place every box and bend; neighbours in a layer are at least `gap` apart."""
    depth = _depths(picture)
    boxes = [Item(b, depth[b], box_size(b)) for b in range(len(picture.boxes))]
    layers: list[list[Item]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for item in boxes:
        layers[item.layer].append(item)
    routes = tuple(_route(arrow, boxes, layers, bend_size) for arrow in picture.arrows)
    _order(layers)
    _place(layers, gap)
    return Layout(tuple(tuple(layer) for layer in layers), routes)


def _depths(picture: Picture) -> list[int]:
    """The longest way from a source to each box."""
    inputs: list[list[int]] = [[] for _ in picture.boxes]
    for arrow in picture.arrows:
        inputs[arrow.target].append(arrow.source)
    depth: list[int | None] = [None] * len(inputs)
    left = list(range(len(inputs)))
    while left:
        ready = [b for b in left if all(depth[i] is not None for i in inputs[b])]
        if not ready:
            raise InvalidProgramError("the plan has a cycle, and only a job without cycles can be drawn")
        for b in ready:
            depth[b] = max((d + 1 for i in inputs[b] if (d := depth[i]) is not None), default=0)
        left = [b for b in left if depth[b] is None]
    return [d or 0 for d in depth]


def _route(arrow: Arrow, boxes: Sequence[Item], layers: list[list[Item]], bend_size: int) -> Route:
    source, target = boxes[arrow.source], boxes[arrow.target]
    bends = [Item(None, layer, bend_size) for layer in range(source.layer + 1, target.layer)]
    for bend in bends:
        layers[bend.layer].append(bend)
    items = (source, *bends, target)
    for upper, lower in pairwise(items):
        upper.below.append(lower)
        lower.above.append(upper)
    return Route(arrow, items)


def _order(layers: list[list[Item]]) -> None:
    """Sort each layer by the mean position of its neighbours, down and up a few times, and keep the best order."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            position = {item: p for every in layers for p, item in enumerate(every)}
            means = {}
            for item in layer:
                near = [position[other] for other in (item.above if is_down else item.below)]
                means[item] = sum(near) / len(near) if near else float(position[item])
            layer.sort(key=means.__getitem__)
        if (count := _crossings(layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], count
    layers[:] = best


def _crossings(layers: Sequence[Sequence[Item]]) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        position = {item: p for p, item in enumerate(lower)}
        pieces = [(p, position[other]) for p, item in enumerate(upper) for other in item.below]
        count += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for i, a in enumerate(pieces) for b in pieces[:i])
    return count


def _place(layers: Sequence[Sequence[Item]], gap: int) -> None:
    """Move each item towards the mean of its neighbours as far as the distances in its layer allow."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer), gap)
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            _spread(layer, [_wish(item, is_down) for item in layer], gap)
    for layer in layers:  # the last word: boxes with one input and one output each stand in one line
        _spread(layer, [_wish(item, True) for item in layer], gap)
    start = min((item.center - item.size // 2 for layer in layers for item in layer), default=0)
    for layer in layers:
        for item in layer:
            item.center -= start


def _wish(item: Item, is_down: bool) -> float:
    near = (item.above if is_down else item.below) or [item]
    return sum(other.center for other in near) / len(near)


def _spread(layer: Sequence[Item], wishes: Sequence[float], gap: int) -> None:
    """The centres nearest to the wishes (least squares) that leave room for every size.

    With the needed distances taken off, centres only have to be in order: neighbours whose wishes are out of order
    form a group that sits at the mean of its members' wishes.
    """
    offsets = [0]
    for a, b in pairwise(layer):
        offsets.append(offsets[-1] + (a.size - a.size // 2) + b.size // 2 + gap)
    groups: list[tuple[float, int]] = []  # (mean wish, members)
    for wish, offset in zip(wishes, offsets, strict=True):
        mean, members = wish - offset, 1
        while groups and groups[-1][0] > mean:
            other, count = groups.pop()
            mean, members = (mean * members + other * count) / (members + count), members + count
        groups.append((mean, members))
    means = [mean for mean, members in groups for _ in range(members)]
    for item, mean, offset in zip(layer, means, offsets, strict=True):
        item.center = round(mean) + offset
