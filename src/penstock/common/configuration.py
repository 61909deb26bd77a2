"""The configuration of a job: keys with values."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

from penstock.common.config_options import ConfigOption
from penstock.common.config_values import parse_as, to_text
from penstock.common.exceptions import ConfigurationError
from penstock.common.redaction import redacted_settings

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Keys and their values. Getters convert values that were set as text: `get_integer` reads `"5"` as 5.

    >>> config = Configuration().set_string("parallelism.default", "4")
    >>> config.get_integer("parallelism.default", 1)
    4
    """

    def __init__(self, other: Configuration | None = None, j_configuration: Configuration | None = None) -> None:
        """:param j_configuration: A configuration to share values with, as with PyFlink's Java handles."""
        if j_configuration is not None:
            self._values: dict[str, Any] = j_configuration._values
        else:
            self._values = dict(other._values) if other is not None else {}

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration of these keys and values.

        >>> Configuration.from_dict({"parallelism.default": "4"}).get_integer("parallelism.default", 1)
        4
        """
        configuration = cls()
        configuration._values.update(map)
        return configuration

    def get(self, option: ConfigOption[T]) -> T:
        """The value of an option, found under its key or an older name of it, else its default."""
        return cast(T, self._read(option, option.default))

    def get_optional(self, option: ConfigOption[T]) -> T | None:
        """The value of an option if it was set; its default does not count."""
        return cast("T | None", self._read(option, None))

    def set(self, option: ConfigOption[T], value: T | str) -> Configuration:
        """Set an option; ConfigurationError if the value does not fit its type."""
        for old_key in option.old_keys:
            self._values.pop(old_key, None)
        self._values[option.key] = _parse(option.key, option.value_type, value)
        return self

    def get_string(self, key: str, default_value: str) -> str:
        """The value of a key as a string; `default_value` if it is not set."""
        return str(self._typed(key, "string", default_value))

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a key to a string."""
        return self._set(key, "string", value)

    def get_integer(self, key: str, default_value: int) -> int:
        """The value of a key as a whole number; `default_value` if it is not set."""
        return int(self._typed(key, "long", default_value))

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a key to a whole number."""
        return self._set(key, "long", value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value of a key as a boolean; `default_value` if it is not set."""
        return bool(self._typed(key, "boolean", default_value))

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a key to a boolean."""
        return self._set(key, "boolean", value)

    def get_float(self, key: str, default_value: float) -> float:
        """The value of a key as a float; `default_value` if it is not set."""
        return float(self._typed(key, "double", default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a key to a float."""
        return self._set(key, "double", value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The value of a key as bytes; `default_value` if it is not set."""
        return bytearray(self._typed(key, "bytes", default_value))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set a key to bytes."""
        return self._set(key, "bytes", value)

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The items of a list written as `a;b;c` or as a YAML list `[a, b, c]`."""
        return list(parse_as("list", value)) if value else []

    def key_set(self) -> builtins.set[str]:
        """All keys that are set."""
        return builtins.set(self._values)

    def contains_key(self, key: str) -> bool:
        """True if the key is set."""
        return key in self._values

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Copy all entries of `other`, with `prefix` before each key as it is (no dot is added)."""
        self._values.update({f"{prefix or ''}{key}": value for key, value in other._values.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all entries into a dict, with the types that they were set with."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """All entries as text."""
        return {key: to_text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Unset a key. True if it was set."""
        return self._values.pop(key, _ABSENT) is not _ABSENT

    def _read(self, option: ConfigOption[T], default: Any) -> Any:
        for key in (option.key, *option.old_keys):
            if key in self._values:
                return _parse(key, option.value_type, self._values[key])
        return default

    def _typed(self, key: str, value_type: str, default: Any) -> Any:
        return _parse(key, value_type, self._values[key]) if key in self._values else default

    def _set(self, key: str, value_type: str, value: object) -> Configuration:
        if value is None:
            raise ConfigurationError(f"{key}: None cannot be set; use remove_config({key!r}) to unset it")
        self._values[key] = _parse(key, value_type, value)
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __bool__(self) -> bool:
        # An empty configuration is still one: `configuration or default` must not drop it.
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in redacted_settings(self.to_dict()).items()) + "}"

    def __repr__(self) -> str:
        return f"Configuration({redacted_settings(self.to_dict())!r})"


_ABSENT = object()


def _parse(key: str, value_type: str, value: object) -> Any:
    try:
        return parse_as(value_type, value)
    except (ValueError, TypeError) as error:
        rule = str(error).removeprefix(f"{value!r} is not a {value_type}; ")
        raise ConfigurationError(f"{key}: {value!r} is not a {value_type}; {rule}") from error
