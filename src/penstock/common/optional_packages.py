"""Packages that only some connectors need: imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.common.exceptions import EnvironmentSetupError


def optional_package(module: str, extra: str, user: str) -> Any:
    """The module. If it is not installed, EnvironmentSetupError names the extra of Penstock that brings it.

    :param user: What needs the module, by the name the user knows.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != module.partition(".")[0]:
            raise  # It is there, but something that it needs itself is not.
        raise EnvironmentSetupError(
            f"{user} needs the Python package {module.partition('.')[0]!r}, which is not installed; "
            f"install it with: pip install 'penstock[{extra}]'"
        ) from None
