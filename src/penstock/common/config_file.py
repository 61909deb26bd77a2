"""Reading `conf/config.yaml`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.common.config_values import to_text
from penstock.common.exceptions import ConfigurationError

__all__ = ["CONF_DIR_VARIABLE", "load_conf_dir", "load_config_file"]

CONF_DIR_VARIABLE = "PENSTOCK_CONF_DIR"


def load_conf_dir() -> dict[str, str]:
    """The settings of `config.yaml` in the folder that PENSTOCK_CONF_DIR names; none if it is not set."""
    folder = os.environ.get(CONF_DIR_VARIABLE)
    return load_config_file(folder) if folder else {}


def load_config_file(path: str | Path) -> dict[str, str]:
    """The keys and values of a YAML file, nested or flat; `path` may be the folder that holds `config.yaml`.

    Values stay as written (`1 min`, `true`, `off`); a key without a value counts as not set.
    """
    import yaml  # here, because workers import this package too and never read the file

    file = Path(path)
    if file.is_dir():
        file = file / "config.yaml"
    try:
        # The base loader leaves every scalar a string: YAML 1.1 would turn `off` into False and `1:30` into 90.
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigurationError(f"cannot read the configuration file {file}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the configuration file {file} is not valid YAML: {error}") from error
    if content in (None, ""):
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"the configuration file {file} must hold keys and values such as 'parallelism.default: 4', "
            f"got a {type(content).__name__}"
        )
    return dict(_flatten(content, ""))


def _flatten(node: dict[Any, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in node.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{key}.")
        elif value not in ("", "~", "null"):
            yield key, to_text(value)
