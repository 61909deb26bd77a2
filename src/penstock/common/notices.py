"""Warnings for people: one line each, once, without the place in Penstock's own code that they come from."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["PenstockWarning", "notify"]


class PenstockWarning(UserWarning):
    """Something the user should know although the job runs."""


def notify(message: str, category: type[Warning] = PenstockWarning) -> None:
    """Warn; Python shows each text once. `warnings.filterwarnings` hides them or makes them errors, as usual."""
    warnings.warn(message, category, stacklevel=2)


_format_warning = warnings.formatwarning


def _format(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    if issubclass(category, PenstockWarning):
        return f"penstock: {message}\n"
    return _format_warning(message, category, filename, lineno, line)


warnings.formatwarning = _format
