"""Classes that exist for their name: they can be imported, derived from and annotated with; every use is refused."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, NoReturn


class RefusedName(ABCMeta):
    """The type of such classes. `_refuse` raises; making an instance and reading a public name call it.

    A class says in `instead` what to use in its place.
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
