"""A job drawn with box characters, flowing down, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.graph.drawing.layers import Item, Layout, Route, arrange
from penstock.graph.drawing.picture import Arrow, Box, NodeId, Picture, Plan, read_picture

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
LINES = {
    UP: "│", DOWN: "│", UP | DOWN: "│",
    LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─",
    DOWN | RIGHT: "┌", DOWN | LEFT: "┐", UP | RIGHT: "└", UP | LEFT: "┘",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤", LEFT | RIGHT | DOWN: "┬", LEFT | RIGHT | UP: "┴",
    UP | DOWN | LEFT | RIGHT: "┼",
}  # fmt: skip
GAP = 4


def draw_text(plan: Plan, chains: Sequence[Sequence[NodeId]]) -> str:
    """Draw a plan for a terminal: each chain is a box, each arrow carries how records are shipped.

    `plan` is the parsed plan JSON of the job, `chains` lists the node ids that run together. Where two arrows
    cross, the horizontal one is interrupted; every other meeting of lines is a fork of one output.
    """
    return _TextDrawing(read_picture(plan, chains)).render()


@dataclass
class _Net:
    """All arrows that leave one item towards the next layer: one line down, forking to its targets."""

    source: int
    targets: list[int] = field(default_factory=list)

    @property
    def is_straight(self) -> bool:
        return self.targets == [self.source]

    @property
    def first(self) -> int:
        return min(self.source, *self.targets)

    @property
    def last(self) -> int:
        return max(self.source, *self.targets)


class _TextDrawing:
    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._bodies = [_body(box) for box in picture.boxes]
        self._cells: dict[tuple[int, int], str] = {}
        self._layout: Layout = arrange(picture, self._width, bend_size=1, gap=GAP)
        self._arriving: dict[Item, list[Route]] = {}
        for route in self._layout.routes:
            self._arriving.setdefault(route.items[-1], []).append(route)

    def render(self) -> str:
        row = 0
        for number, layer in enumerate(self._layout.layers):
            if number:
                row = self._draw_gap(row, self._layout.layers[number - 1], layer)
            row = self._draw_layer(row, layer)
        rows = max((r for r, _ in self._cells), default=-1) + 1
        columns = max((c for _, c in self._cells), default=-1) + 1
        lines = ("".join(self._cells.get((r, c), " ") for c in range(columns)).rstrip() for r in range(rows))
        return "\n".join(lines)

    def _width(self, box: int) -> int:
        body, title = self._bodies[box], self._picture.boxes[box].parallelism_text
        labels = [self._label(arrow) for arrow in self._picture.arrows if arrow.target == box]
        ports = 2 * len(labels[0]) + 3 if len(labels) == 1 else sum(len(label) + 4 for label in labels)
        return max(max(len(line) for line in body) + 4, len(title) + 6, ports)

    def _label(self, arrow: Arrow) -> str:
        """The ship strategy, and the operator it leaves from where the source box has more than one end."""
        operators = self._picture.boxes[arrow.source].operators
        if arrow.operator == len(operators) - 1:
            return arrow.label
        name = operators[arrow.operator].lines[0]
        return f"{arrow.label} from {name if len(name) <= 24 else name[:23] + '…'}".lstrip()

    # Boxes

    def _draw_layer(self, top: int, layer: Sequence[Item]) -> int:
        """Draw the boxes and bends of a layer and lead every output down to the layer's last row."""
        bottom = top + max(1 if item.box is None else len(self._bodies[item.box]) + 2 for item in layer)
        for item in layer:
            end = top
            if item.box is not None:
                end = self._draw_box(top, item, item.box)
            if item.below:
                for row in range(end, bottom):
                    self._put(row, item.center, "│")
        return bottom

    def _draw_box(self, top: int, item: Item, box: int) -> int:
        left, inner = item.center - item.size // 2, item.size - 2
        title = f"─ {self._picture.boxes[box].parallelism_text} "
        self._write(top, left, "┌" + title.ljust(inner, "─") + "┐")
        for offset, line in enumerate(self._bodies[box], 1):
            self._write(top + offset, left, "│ " + line.ljust(inner - 2) + " │")
        bottom = top + len(self._bodies[box]) + 1
        self._write(bottom, left, "└" + "─" * inner + "┘")
        if item.below:
            self._put(bottom, item.center, "┬")
        return bottom + 1

    # Arrows

    def _draw_gap(self, top: int, upper: Sequence[Item], lower: Sequence[Item]) -> int:
        """Draw the arrows between two layers: rows for the horizontal lines, then one with heads and labels."""
        nets = {item: _Net(item.center) for item in upper if item.below}
        heads: list[tuple[int, str]] = []
        for item in lower:
            self._connect(item, nets, heads)
        bent = [net for net in nets.values() if not net.is_straight]
        tracks = _share_tracks(bent)
        height = max(len(tracks), 1)
        for net in nets.values():
            track = next((t for t, members in enumerate(tracks) if net in members), 0)
            self._draw_net(net, top, top + track, top + height)
        for column, text in heads:
            self._write(top + height, column, text)
        return top + height + 1

    def _connect(self, item: Item, nets: dict[Item, _Net], heads: list[tuple[int, str]]) -> None:
        """Give every piece that ends at `item` a column that no other output has, so that no two lines share one."""
        sources = {net.source: upper for upper, net in nets.items()}
        if item.box is None:
            (upper,) = item.above
            while sources.get(item.center, upper) is not upper:
                item.center += 1
            nets[upper].targets.append(item.center)
            return
        arriving = sorted(self._arriving.get(item, []), key=lambda route: route.items[-2].center)
        labels = [self._label(route.arrow) for route in arriving]
        total = sum(len(label) + 4 for label in labels)
        column = item.center if len(labels) == 1 else item.center - total // 2 + 1
        for route, label in zip(arriving, labels, strict=True):
            upper, port = route.items[-2], column
            if sources.get(port, upper) is not upper:
                port += 1
            nets[upper].targets.append(port)
            heads.append((port, f"▼ {label}"))
            column += len(label) + 4

    def _draw_net(self, net: _Net, top: int, track: int, bottom: int) -> None:
        marks: dict[tuple[int, int], int] = {}

        def mark(row: int, column: int, directions: int) -> None:
            marks[row, column] = marks.get((row, column), 0) | directions

        for row in range(top, track):
            mark(row, net.source, UP | DOWN)
        mark(track, net.source, UP)
        for target in net.targets:
            for row in range(track + 1, bottom + 1):
                mark(row, target, UP | DOWN)
            mark(track, target, DOWN)
        for column in range(net.first, net.last):
            mark(track, column, RIGHT)
            mark(track, column + 1, LEFT)
        for (row, column), directions in marks.items():
            has_other = (row, column) in self._cells
            self._put(row, column, "│" if has_other else LINES[directions])

    def _write(self, row: int, column: int, text: str) -> None:
        for offset, char in enumerate(text):
            self._put(row, column + offset, char)

    def _put(self, row: int, column: int, char: str) -> None:
        self._cells[row, column] = char


def _body(box: Box) -> list[str]:
    """The lines inside a box; an operator that takes its input from the one above it starts with an arrow."""
    lines = []
    for number, operator in enumerate(box.operators):
        lead = operator.guide + ("→ " if number else "")
        lines.append(lead + operator.lines[0])
        under = lead.replace("├", "│").replace("└", " ").replace("→", " ")
        lines.extend(under + line for line in operator.lines[1:])
    return lines


def _share_tracks(nets: Sequence[_Net]) -> list[list[_Net]]:
    """Rows for the horizontal lines; lines that do not touch share a row."""
    tracks: list[list[_Net]] = []
    for net in sorted(nets, key=lambda n: n.first):
        for track in tracks:
            if track[-1].last + 1 < net.first:
                track.append(net)
                break
        else:
            tracks.append([net])
    return tracks
