"""Formats that read bounded input."""

from __future__ import annotations

__all__ = ["InputFormat"]


class InputFormat:
    """Base of what `create_input` reads; made by the formats, for instance `CsvReaderFormat`."""
