"""What keyed state does, in the simplest words: every state is a dictionary of parts, and each part has a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TTL_MS = 10
KINDS = ("value", "list", "map", "reducing", "aggregating")


@dataclass
class Model:
    """State by (kind, namespace, key). `ttl` is None, "write" or "read": what makes a part live longer."""

    ttl: str | None
    now: int = 0
    states: dict[Any, dict[Any, tuple[Any, int]]] = field(default_factory=dict)

    def copied_states(self) -> dict[Any, dict[Any, tuple[Any, int]]]:
        return {place: dict(parts) for place, parts in self.states.items()}

    def parts(self, place: Any) -> dict[Any, Any]:
        """The parts that are not expired."""
        return {name: part[0] for name, part in self._live(place).items()}

    def _live(self, place: Any) -> dict[Any, tuple[Any, int]]:
        parts = self.states.get(place, {})
        return {name: part for name, part in parts.items() if self.ttl is None or part[1] + TTL_MS > self.now}

    def read(self, place: Any, names: list[Any] | None = None) -> dict[Any, Any]:
        """The parts as a reader sees them; `names` are those that he looks at, None means all."""
        parts = self._live(place)
        if self.ttl == "read":
            looked_at = parts if names is None else [name for name in names if name in parts]
            parts.update({name: (parts[name][0], self.now) for name in looked_at})
        self.states[place] = parts
        return {name: part[0] for name, part in parts.items()}

    def write(self, place: Any, new: dict[Any, Any]) -> None:
        """Set some parts."""
        self.states[place] = {**self._live(place), **{name: (value, self.now) for name, value in new.items()}}

    def replace(self, place: Any, new: dict[Any, Any]) -> None:
        self.states[place] = {name: (value, self.now) for name, value in new.items()}

    def remove(self, place: Any, name: Any) -> None:
        self.states.get(place, {}).pop(name, None)

    def append(self, place: Any, values: list[Any]) -> None:
        parts = [*self._live(place).values(), *((value, self.now) for value in values)]
        self.states[place] = dict(enumerate(parts))

    def move(self, source: Any, target: Any) -> None:
        """Merge the namespace of `source` into that of `target`."""
        theirs, mine = self._live(source), self._live(target)
        self.states.pop(source, None)
        if target[0] == "list":
            self.states[target] = dict(enumerate([*mine.values(), *theirs.values()]))
        elif theirs:
            self.replace(target, {0: sum(part[0] for part in [*mine.values(), *theirs.values()])})
