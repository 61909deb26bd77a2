"""Small interfaces that several kinds of sources and formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.common.typeinfo import TypeInformation

__all__ = ["ResultTypeQueryable"]


class ResultTypeQueryable(ABC):
    """Something that knows the type of the elements it produces."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Type of the elements."""
