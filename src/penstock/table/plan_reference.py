"""Where a compiled plan is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.common.exceptions import UnsupportedFeatureError

__all__ = ["PlanReference", "FilePlanReference", "JsonContentPlanReference"]


class PlanReference:
    """Where a compiled plan is: in a file, or in a text.

    >>> PlanReference.from_json_string("{}")
    JsonContentPlanReference(content='{}')
    """

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """A plan in a file."""
        return FilePlanReference(Path(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """A plan in a text."""
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> PlanReference:
        """Not supported: Flink's binary form of a plan."""
        raise UnsupportedFeatureError("PlanReference.from_smile_bytes: plans are read as JSON; use from_json_string")


@dataclass(frozen=True)
class FilePlanReference(PlanReference):
    """A compiled plan in a file.

    >>> PlanReference.from_file("plan.json").get_file().name
    'plan.json'
    """

    path: Path

    def get_file(self) -> Path:
        """The path of the file."""
        return self.path


@dataclass(frozen=True)
class JsonContentPlanReference(PlanReference):
    """A compiled plan in a text.

    >>> PlanReference.from_json_string("{}").get_content()
    '{}'
    """

    content: str

    def get_content(self) -> str:
        """The text."""
        return self.content
