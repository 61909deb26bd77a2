"""Names of PyFlink that have no counterpart here: they can be imported, and say so when they are used.

Many programs import what they never use. Refusing the import would refuse the program.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NoReturn

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.refused_names import RefusedName

_INSTEAD = {
    "table": "of PyFlink's tables it is one of the few names that are missing; many statements of SQL do the same",
    "dataset": "use a StreamExecutionEnvironment in RuntimeExecutionMode.BATCH",
    "java": "there is no Java behind this API; connectors and functions here are Python",
    "internal": "it is internal to PyFlink",
}

#: PyFlink's modules that exist only for Java or for PyFlink itself; of its tables, those that are missing.
_MODULES = {
    "table": "table",
    "dataset": "dataset",
    "java_gateway": "java",
    "util": "java",
    "serializers": "internal",
    "fn_execution": "internal",
    "testing": "internal",
    "common.utils": "java",
}

_STAND_INS = {"java": "penstock.datastream.java_handles", "internal": "penstock.compat.internals"}


class AbsentName(RefusedName):
    """The type of PyFlink's names that have no counterpart."""

    def _refuse(cls) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{cls.__module__}.{cls.__qualname__} has no counterpart in Penstock; {cls.instead}"
        )


def absent_name(module: str, name: str, kind: str) -> type:
    return AbsentName(name, (), {"__module__": module, "instead": _INSTEAD[kind]})


def kind_of(module: str) -> str | None:
    """Why a PyFlink module (named without "pyflink.") does not exist here; None if nothing is known about it."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((_MODULES[prefix] for prefix in prefixes if prefix in _MODULES), None)


class AbsentModule(ModuleType):
    """A module that has every public name, none of which can be used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        kind = kind_of(self.__name__.partition(".")[2]) or "internal"
        made = made_here(kind, name) or absent_name(self.__name__, name, kind)
        setattr(self, name, made)
        return made


def made_here(kind: str, name: str) -> Any:
    """What takes the place of a name of PyFlink's Java side or its insides; None if there is nothing."""
    # Imported here because it loads the whole API, which a program that only imports the name does not need.
    return getattr(importlib.import_module(_STAND_INS[kind]), name, None) if kind in _STAND_INS else None
