"""The page of all configuration keys, from the options that the code defines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from penstock.common import config_keys
from penstock.common.config_keys import WITHOUT_EFFECT
from penstock.common.config_options import ConfigOption

_OPENING = """# Configuration

Every key that takes effect, with its default. Names and defaults are Flink's where the meaning is Flink's; keys under
`penstock.` are its own, and keys under `spark.` go to the Spark session as they are.

A value is taken from the first of these that has it:

1. the program: `env.configure(...)`, `env.get_config()`, or a setter such as `env.enable_checkpointing(10_000)`;
2. the command line: `penstock run -D key=value job.py`;
3. `config.yaml` in the folder that `--conf` or `PENSTOCK_CONF_DIR` names, nested or flat.

Durations are numbers of milliseconds or texts such as `10 s`, `1 min`, `2 h`. An unknown key gives a warning with the
nearest known one. [Keys without effect](#keys-without-effect) are those that a configuration made for Flink may have
and that nothing here depends on.
"""
_WITHOUT_EFFECT = """## Keys without effect

They are accepted, so that configurations and programs made for Flink run. Setting one to another value than its default
is reported once. Flink's keys that set up its Java processes (`taskmanager.memory.*`, `kubernetes.*` and so on) are
accepted silently.

| Key | Why |
|---|---|"""


def page() -> str:
    """One table for each group of keys, in the order in which the code defines them."""
    parts = [_OPENING]
    for heading, options in _groups():
        parts.append(f"## {heading}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|")
        parts[-1] += "".join(f"\n{_row(option)}" for option in options) + "\n"
    parts.append(_WITHOUT_EFFECT + "".join(f"\n| `{key}` | {why} |" for key, why in WITHOUT_EFFECT.items()) + "\n")
    return "\n".join(parts)


def _groups() -> Iterator[tuple[str, list[ConfigOption[Any]]]]:
    """The headings are the comments above the groups in `config_keys`."""
    heading, options = "Other", []
    for line in inspect.getsource(config_keys).splitlines():
        if comment := re.fullmatch(r"# ([A-Z][\w, ]*)", line):
            if options:
                yield heading, options
            heading, options = comment[1], []
        elif definition := re.match(r"([A-Z][A-Z0-9_]*) = ", line):
            option = getattr(config_keys, definition[1])
            if isinstance(option, ConfigOption) and option.key not in WITHOUT_EFFECT:
                options.append(option)
    if options:
        yield heading, options


def _row(option: ConfigOption[Any]) -> str:
    meaning = option.description[:1].upper() + option.description[1:]
    if option.old_keys:
        older = ", ".join(f"`{key}`" for key in option.old_keys)
        meaning += f"{'. ' if meaning else ''}Older names: {older}"
    return f"| `{option.key}` | {option.value_type} | {_default(option)} | {meaning.replace('|', '&#124;')} |"


def _default(option: ConfigOption[Any]) -> str:
    if option.default is None:
        return "none"
    if option.value_type == "duration":
        return _duration(option.default)
    if option.value_type == "boolean":
        return str(option.default).lower()
    return f"`{option.default}`" if isinstance(option.default, str) else str(option.default)


def _duration(milliseconds: int) -> str:
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
