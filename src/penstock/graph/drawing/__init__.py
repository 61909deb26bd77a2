"""Pictures of a job: its chains as boxes, its exchanges as arrows, for a terminal or as SVG."""

from __future__ import annotations

from penstock.graph.drawing.svg import draw_svg
from penstock.graph.drawing.text import draw_text

__all__ = ["draw_svg", "draw_text"]
