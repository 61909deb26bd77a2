"""Read Flink's `config.yaml`: nested or flat keys, every value kept as it is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from penstock.common.exceptions import ConfigurationError

FILE_NAME = "config.yaml"
FOLDER_VARIABLE = "PENSTOCK_CONF_DIR"


def read_config(location: Path | None) -> dict[str, str]:
    """The settings of a config file, or of `config.yaml` in a folder.

    Without a location the folder is the one PENSTOCK_CONF_DIR names; without that too there are no settings.
    """
    if location is None:
        if not os.environ.get(FOLDER_VARIABLE):
            return {}
        location = Path(os.environ[FOLDER_VARIABLE])
    file = location / FILE_NAME if location.is_dir() else location
    try:
        # BaseLoader keeps every scalar a string, so that `10:30`, `on` or `1e3` mean what Flink reads in them.
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except OSError as exc:
        raise ConfigurationError(f"cannot read the configuration {file}: {exc.strerror or exc}") from exc
    except yaml.YAMLError as exc:
        raise ConfigurationError(f"{file} is not valid YAML: {exc}") from exc
    if content is None or content == "":
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file} must hold 'key: value' pairs, but holds a {type(content).__name__}")
    return dict(_flatten(content, ""))


def _flatten(tree: dict[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", ";".join(str(part) for part in value)  # how Flink writes lists in one line
        else:
            yield f"{prefix}{name}", str(value)
