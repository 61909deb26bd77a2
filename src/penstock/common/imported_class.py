"""A class that the program's script imports."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ImportedClass:
    """Only its name travels. State in which it is a class of the script is from before it was moved to a module."""

    name: str
    module: str

    def find(self) -> Any:
        """The class itself; imports the module."""
        return getattr(importlib.import_module(self.module), self.name)
