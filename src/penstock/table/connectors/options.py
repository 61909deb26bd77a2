"""The options of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.common.exceptions import InvalidProgramError


@dataclass(frozen=True)
class Options:
    """The texts of a table's WITH clause."""

    values: Mapping[str, str]
    owner: str
    """What the options are of, for messages."""

    def get(self, key: str, otherwise: str | None = None) -> str | None:
        return self.values.get(key, otherwise)

    def required(self, key: str) -> str:
        found = self.values.get(key)
        if found is None:
            raise InvalidProgramError(f"{self.owner} needs the option '{key}', got {sorted(self.values)}")
        return found

    def flag(self, key: str, otherwise: bool = False) -> bool:
        found = self.values.get(key, str(otherwise)).strip().lower()
        if found not in ("true", "false"):
            raise InvalidProgramError(f"{self.owner}: option '{key}' is true or false, got {found!r}")
        return found == "true"

    def whole(self, key: str, otherwise: int | None = None) -> int | None:
        found = self.values.get(key)
        if found is None:
            return otherwise
        try:
            return int(found)
        except ValueError:
            raise InvalidProgramError(f"{self.owner}: option '{key}' is a whole number, got {found!r}") from None

    def below(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, without it."""
        return {key[len(prefix) :]: value for key, value in self.values.items() if key.startswith(prefix)}

    def choice(self, key: str, choices: tuple[str, ...], otherwise: str) -> str:
        found = self.values.get(key, otherwise)
        if found not in choices:
            raise InvalidProgramError(f"{self.owner}: option '{key}' is one of {', '.join(choices)}, got {found!r}")
        return found
