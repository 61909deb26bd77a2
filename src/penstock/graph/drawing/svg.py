"""A job drawn as one self-contained SVG, flowing right, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from penstock.graph.drawing.layers import Item, Route, arrange
from penstock.graph.drawing.picture import Box, NodeId, Picture, Plan, read_picture

CHAR, LINE, PAD, HEADER = 7.3, 19, 14, 26  # pixels: a character's width, a line's height, box padding, box header
BOX_GAP, MARGIN = 28, 24
PORT_GAP = 22  # between arrows that reach the same box: room for a label above each

STYLE = """
.arrow { fill: none; stroke-width: 1.5; }
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
text.soft, text.label { font-size: 11px; }
text.label { text-anchor: end; stroke-width: 4; paint-order: stroke; }
"""
# Colours as plain rules, twice: viewers that know no CSS variables or media queries show the light ones.
COLOURS = """
.page {{ fill: {page}; }} .box {{ fill: {box}; stroke: {edge}; }} .head {{ fill: {head}; }}
.arrow {{ stroke: {edge}; }} .tip {{ fill: {edge}; }}
text {{ fill: {ink}; }} text.soft, text.label {{ fill: {soft}; }} text.label {{ stroke: {page}; }}
"""
LIGHT = COLOURS.format(page="#ffffff", box="#f6f8fa", head="#ddf4ff", edge="#8c959f", ink="#1f2328", soft="#57606a")
DARK = COLOURS.format(page="#0d1117", box="#161b22", head="#12304f", edge="#6e7681", ink="#e6edf3", soft="#9da7b1")


def draw_svg(plan: Plan, chains: Sequence[Sequence[NodeId]]) -> str:
    """Draw a plan as SVG text: each chain is a box, each arrow carries how records are shipped.

    `plan` is the parsed plan JSON of the job, `chains` lists the node ids that run together. The picture needs no
    other file and follows the reader's light or dark setting.
    """
    return _SvgDrawing(read_picture(plan, chains)).render()


class _SvgDrawing:
    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._layout = arrange(picture, self._box_height, bend_size=LINE, gap=BOX_GAP)
        self._arriving: dict[Item, list[Route]] = {}
        for route in self._layout.routes:
            self._arriving.setdefault(route.items[-1], []).append(route)
        for routes in self._arriving.values():
            routes.sort(key=lambda route: route.items[-2].center)
        self._lefts, self._width = self._columns()

    def render(self) -> str:
        items = [item for layer in self._layout.layers for item in layer]
        height = max((item.center + item.size // 2 for item in items), default=0) + 2 * MARGIN
        shapes = [line for route in self._layout.routes for line in self._arrow(route)]
        shapes += [line for item in items if item.box is not None for line in self._box(item, item.box)]
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{self._width:.0f}" height="{height}" '
                f'viewBox="0 0 {self._width:.0f} {height}">',
                "<title>Job graph</title>",
                f"<style>{STYLE}{LIGHT}@media (prefers-color-scheme: dark) {{{DARK}}}</style>",
                '<rect class="page" width="100%" height="100%" rx="8"/>',
                *shapes,
                "</svg>\n",
            ]
        )

    # Sizes and places

    def _box_height(self, box: int) -> int:
        ports = sum(arrow.target == box for arrow in self._picture.arrows)
        text = HEADER + PAD + LINE * sum(len(op.lines) for op in self._picture.boxes[box].operators)
        return max(text, PORT_GAP * (ports + 1))

    def _columns(self) -> tuple[list[float], float]:
        """The left edge of every layer, and the picture's width; a gap is as wide as the labels in it."""
        lefts: list[float] = []
        x = float(MARGIN)
        for layer in self._layout.layers:
            labels = [len(r.arrow.label) for item in layer for r in self._arriving.get(item, [])]
            if lefts:
                x += max(labels, default=0) * CHAR + 56
            lefts.append(x)
            x += max((_box_width(self._picture.boxes[i.box]) for i in layer if i.box is not None), default=0.0)
        return lefts, x + MARGIN

    def _right(self, item: Item) -> float:
        """Where the item's arrows leave: the box's edge, or for a bend the end of its layer."""
        if item.box is not None:
            return self._lefts[item.layer] + _box_width(self._picture.boxes[item.box])
        return self._lefts[item.layer] + max(
            _box_width(self._picture.boxes[i.box]) for i in self._layout.layers[item.layer] if i.box is not None
        )

    def _operator_y(self, item: Item, box: Box, operator: int) -> float:
        above = sum(len(op.lines) for op in box.operators[:operator])
        return MARGIN + item.center - item.size // 2 + HEADER + PAD / 2 + LINE * (above + 0.5)

    # Shapes

    def _box(self, item: Item, box: int) -> Iterator[str]:
        chain = self._picture.boxes[box]
        x, y, width = self._lefts[item.layer], MARGIN + item.center - item.size // 2, _box_width(chain)
        yield f'<rect class="box" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{item.size}" rx="6"/>'
        yield (
            f'<path class="head" d="M{x + 0.5:.1f} {y + HEADER} v{6.5 - HEADER} q0 -6 6 -6 '
            f'h{width - 13:.1f} q6 0 6 6 v{HEADER - 6.5} z"/>'
        )
        yield f'<text class="soft" x="{x + PAD:.1f}" y="{y + 17}">{chain.parallelism_text}</text>'
        for number, operator in enumerate(chain.operators):
            first = self._operator_y(item, chain, number) + 4
            lead = operator.guide + ("→ " if number else "")
            for row, line in enumerate(operator.lines):
                start = x + PAD + len(lead) * CHAR
                if row == 0 and lead:
                    yield f'<text class="soft" xml:space="preserve" x="{x + PAD:.1f}" y="{first:.1f}">{lead}</text>'
                yield f'<text x="{start:.1f}" y="{first + row * LINE:.1f}">{escape(line)}</text>'

    def _arrow(self, route: Route) -> Iterator[str]:
        source, target = route.items[0], route.items[-1]
        chain = self._picture.boxes[route.arrow.source]
        is_end = route.arrow.operator == len(chain.operators) - 1
        y = float(MARGIN + source.center) if is_end else self._operator_y(source, chain, route.arrow.operator)
        path = f"M{self._right(source):.1f} {y:.1f}"
        x = self._right(source)
        for bend in route.items[1:-1]:
            path += _curve(x, y, self._lefts[bend.layer], MARGIN + bend.center)
            x, y = self._right(bend), MARGIN + bend.center
            path += f" H{x:.1f}"
        port, tip = self._port_y(route), self._lefts[target.layer]
        shelf = len(route.arrow.label) * CHAR + 22  # the straight end that carries the label
        path += _curve(x, y, tip - shelf, port) + f" H{tip - 6:.1f}"
        yield f'<path class="arrow" d="{path}"/>'
        yield f'<path class="tip" d="M{tip:.1f} {port:.1f} l-9 -4.5 v9 z"/>'
        if route.arrow.label:
            yield f'<text class="label" x="{tip - 14:.1f}" y="{port - 6:.1f}">{escape(route.arrow.label)}</text>'

    def _port_y(self, route: Route) -> float:
        routes = self._arriving[route.items[-1]]
        return MARGIN + route.items[-1].center + PORT_GAP * (routes.index(route) - (len(routes) - 1) / 2)


def _box_width(box: Box) -> float:
    texts = [len(op.guide) + 2 + max(len(line) for line in op.lines) for op in box.operators]
    return max(*texts, len(box.parallelism_text)) * CHAR + 2 * PAD


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f" C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
