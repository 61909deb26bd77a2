"""Names that PyFlink has in `common`, but whose code is in a package above it, which `common` does not know.

`penstock/__init__.py` gives them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

_modules: dict[str, str] = {}


def offer(modules: Mapping[str, str]) -> None:
    """Offer names in `penstock.common` and `penstock.common.serialization`: name -> the module that defines it."""
    _modules.update(modules)


def offered(name: str, module: str) -> Any:
    """What `module.name` means. Loaded when it is asked for; AttributeError if nothing of that name is offered."""
    if name not in _modules:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_modules[name]), name)
    except ImportError as error:
        raise AttributeError(f"{module}.{name} cannot be loaded: {error}") from error
