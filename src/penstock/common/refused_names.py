"""Classes that exist for their names: programs can import, subclass and annotate with them; any other use fails."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, NoReturn


class RefusedName(ABCMeta):
    """The type of such classes. Making an instance or reading a public name calls `_refuse`, which raises.

    `instead` says what to use in place of the class.
    """

    instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        cls._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or name == "instead":
            raise AttributeError(f"type object {cls.__qualname__!r} has no attribute {name!r}")
        cls._refuse()

    def _refuse(cls) -> NoReturn:
        raise NotImplementedError
