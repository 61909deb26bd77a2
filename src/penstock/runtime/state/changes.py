"""Which entries of a state table have changed since a snapshot. Entries that came and went in between do not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any


class Changes(defaultdict[Hashable, dict[Any, bool]]):
    """Namespace -> names of entries that differ from the snapshot -> whether the snapshot has the entry.

    The name of an entry that the snapshot does not have is forgotten when the entry is removed. For speed, callers may
    also note writes without calling a method: they set a name that is not here yet to whether the entry existed before
    the write.

    In a namespace listed in `whole`, any entry may differ. Writes there need not be noted, but removals must be. If a
    new entry was not noted and is then removed, it counts as part of the snapshot. The next delta then removes an entry
    that no snapshot has, which does no harm.
    """

    def __init__(self) -> None:
        super().__init__(dict)
        self.whole: set[Hashable] = set()
        self.kept: Hashable = None
        """The namespace whose dictionary stays even if it becomes empty; None if there is none."""

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self.whole)

    def clear(self) -> None:
        super().clear()
        self.whole.clear()

    def mark_whole(self, namespace: Hashable) -> None:
        """Add the namespace to `whole`. All entries noted so far must still exist: their names are forgotten."""
        self.pop(namespace, None)
        self.whole.add(namespace)

    def written(self, namespace: Hashable, name: Any, was_there: bool) -> None:
        """Note a write, before or just after it. `was_there` is True if the entry existed before."""
        names = self[namespace]
        if name not in names:
            names[name] = was_there

    def written_all(self, namespace: Hashable, names: Iterable[Any], new: Iterable[Any]) -> None:
        """Note writes of many entries. Those of `new` did not exist before."""
        held = self[namespace]
        for are_there, some in ((False, new), (True, names)):
            unknown = [name for name in some if name not in held]
            if unknown:
                held.update(dict.fromkeys(unknown, are_there))

    def removed(self, namespace: Hashable, name: Any) -> None:
        """Note the removal of an entry that existed."""
        names = self[namespace]
        if names.get(name, True):
            names[name] = True
            return
        del names[name]
        if not names and namespace is not self.kept:
            del self[namespace]

    def removed_all(self, namespace: Hashable, names: Iterable[Any]) -> None:
        for name in names:
            self.removed(namespace, name)

    def is_in_snapshot(self, namespace: Hashable, name: Any) -> bool | None:
        """True if the snapshot has the entry; None if no change of it is noted."""
        names = self.get(namespace)
        return None if names is None else names.get(name)

    def follow(self, later: Changes, entries: Mapping[Hashable, Container[Any]]) -> None:
        """Add the changes since a later snapshot, so that these are all changes since the earlier one.

        `entries` are the current entries of the table.
        """
        self.whole |= later.whole
        for namespace, names in later.items():
            held, there = self[namespace], entries.get(namespace, ())
            held.update({name: is_saved for name, is_saved in names.items() if name not in held})
            self.removed_all(namespace, [name for name in names if name not in there])
            if not self[namespace]:
                del self[namespace]


class Untracked:
    """Takes the place of `Changes` where no delta will be needed. Every name seems to be noted already."""

    def __getitem__(self, namespace: Hashable) -> Untracked:
        return self

    def __contains__(self, name: Any) -> bool:
        return True

    def __bool__(self) -> bool:
        return False

    def written(self, namespace: Hashable, name: Any, was_there: bool) -> None:
        """Not recorded."""

    def written_all(self, namespace: Hashable, names: Iterable[Any], new: Iterable[Any]) -> None:
        """Not recorded."""

    def removed(self, namespace: Hashable, name: Any) -> None:
        """Not recorded."""

    def removed_all(self, namespace: Hashable, names: Iterable[Any]) -> None:
        """Not recorded."""

    def is_in_snapshot(self, namespace: Hashable, name: Any) -> bool | None:
        return None

    def clear(self) -> None:
        """Nothing to forget."""
