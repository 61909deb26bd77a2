"""Configuration keys with a type and a default value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from penstock.common.config_values import parse_as

__all__ = ["ConfigOption", "ConfigOptions", "ValueType"]

T = TypeVar("T")

ValueType = Literal["string", "boolean", "int", "long", "float", "double", "duration", "list", "map"]


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A configuration key, the type of its value and the default; made by `ConfigOptions.key(...)`.

    `ConfigOptions` has an example.
    """

    key: str
    value_type: ValueType
    default: T
    old_keys: tuple[str, ...] = field(default=())
    description: str = ""

    def with_deprecated_keys(self, *keys: str) -> ConfigOption[T]:
        """The same option, also read under these older names."""
        return replace(self, old_keys=self.old_keys + keys)

    def with_description(self, description: str) -> ConfigOption[T]:
        """The same option with a sentence for the documentation."""
        return replace(self, description=description)

    def parse(self, value: object) -> Any:
        """Read a value that is text or has its type already; ValueError says what the type takes."""
        return parse_as(self.value_type, value)


class ConfigOptions:
    """Starts the definition of an option.

    >>> ConfigOptions.key("application.parallelism").int_type().default_value(100).default
    100
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Begin the definition of an option with its key."""
        return ConfigOptions.OptionBuilder(key)

    @dataclass(frozen=True)
    class OptionBuilder:
        """An option that still lacks its type."""

        _key: str

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """True or false, written `true` or `false`."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "boolean")

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number of 32 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "int")

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A whole number of 64 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "long")

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number; the same as `double_type()` in Python."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "float")

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "double")

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Any text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "string")

        def duration_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """A duration such as `5 s`, read as milliseconds."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "duration")

        def list_type(self) -> ConfigOptions.TypedConfigOptionBuilder[list[str]]:
            """A list of strings, written `a;b;c`."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "list")

        def map_type(self) -> ConfigOptions.TypedConfigOptionBuilder[dict[str, str]]:
            """A dictionary of strings, written `key1:value1,key2:value2`."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, "map")

    @dataclass(frozen=True)
    class TypedConfigOptionBuilder(Generic[T]):
        """An option that still lacks its default value."""

        _key: str
        _value_type: ValueType

        def default_value(self, value: T) -> ConfigOption[T]:
            """The finished option; `value` is what it has where it is not set."""
            return ConfigOption(self._key, self._value_type, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """The finished option, which is None where it is not set."""
            return ConfigOption(self._key, self._value_type, None)
