"""What has changed in a table of state since a snapshot, without what came and went in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any


class Changes(defaultdict[Hashable, dict[Any, bool]]):
    """Namespace -> names of entries that differ from the snapshot -> whether the snapshot has the entry.

    An entry that the snapshot does not have and that is gone again leaves nothing. Who works on this directly, for
    speed, sets the name of an entry that is written to whether it was there before, unless the name is known already.

    Of a namespace that is in `whole`, any entry may differ, and entries that are written need not be noted. Those that
    are removed must be. If one of them was new, and nobody noted that, the snapshot is said to have it: it is removed
    once more where it never was, which does no harm.
    """

    def __init__(self) -> None:
        super().__init__(dict)
        self.whole: set[Hashable] = set()

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self.whole)

    def clear(self) -> None:
        super().clear()
        self.whole.clear()

    def take_for_whole(self, namespace: Hashable) -> None:
        """Any entry may differ from now on; all those that were noted are there."""
        self.pop(namespace, None)
        self.whole.add(namespace)

    def written(self, namespace: Hashable, name: Any, was_there: bool) -> None:
        """An entry is written, or was just now; `was_there` says whether it was there before."""
        names = self[namespace]
        if name not in names:
            names[name] = was_there

    def written_all(self, namespace: Hashable, names: Iterable[Any], new: Iterable[Any]) -> None:
        """Entries are written; those of `new` were not there before."""
        held = self[namespace]
        for are_there, some in ((False, new), (True, names)):
            unknown = [name for name in some if name not in held]
            if unknown:
                held.update(dict.fromkeys(unknown, are_there))

    def removed(self, namespace: Hashable, name: Any) -> None:
        """An entry that was there is gone."""
        names = self[namespace]
        if names.get(name, True):
            names[name] = True
            return
        del names[name]
        if not names:
            del self[namespace]

    def removed_all(self, namespace: Hashable, names: Iterable[Any]) -> None:
        for name in names:
            self.removed(namespace, name)

    def is_in_snapshot(self, namespace: Hashable, name: Any) -> bool | None:
        """Whether the snapshot has the entry; None if it has not changed since."""
        names = self.get(namespace)
        return None if names is None else names.get(name)

    def follow(self, later: Changes, entries: Mapping[Hashable, Container[Any]]) -> None:
        """Add the changes since a later snapshot; `entries` are those that there are now."""
        self.whole |= later.whole
        for namespace, names in later.items():
            held, there = self[namespace], entries.get(namespace, ())
            held.update({name: is_saved for name, is_saved in names.items() if name not in held})
            self.removed_all(namespace, [name for name in names if name not in there])
            if not self[namespace]:
                del self[namespace]


class Untracked:
    """Stands in for the changes where nobody will ask for a delta."""

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
