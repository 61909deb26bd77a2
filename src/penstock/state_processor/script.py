"""The classes of the program's script on their way to Spark's tasks: state may be made of them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.datastream.script_classes import classes_of_script, imports_of_script
from penstock.runtime.state.codec import use_script_classes


@dataclass(frozen=True)
class Script:
    """Classes as bytes. Spark's own cloudpickle would build classes that state does not find."""

    pickled: bytes

    @staticmethod
    def of_program() -> Script:
        return Script(cloudpickle.dumps((*classes_of_script(), *imports_of_script())))

    def load(self) -> Any:
        """Make the classes known to state for as long as the result is held."""
        classes = pickle.loads(self.pickled)
        use_script_classes(classes)
        return classes
