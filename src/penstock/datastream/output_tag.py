"""Names for side outputs."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types

__all__ = ["OutputTag"]


class OutputTag:
    """Names a side output and the type of its elements.

    Two tags with the same id and type are the same side output. Emit with `yield tag, value` or
    `ctx.output(tag, value)` and read with `stream.get_side_output(tag)`.

    :param tag_id: Name of the side output, not empty.
    :param type_info: Type of the elements; a list of types stands for a row; any Python value if left out.

    >>> OutputTag("late") == OutputTag("late")
    True
    """

    __slots__ = ("tag_id", "type_info")

    tag_id: str
    type_info: TypeInformation

    def __init__(self, tag_id: str, type_info: TypeInformation | Sequence[TypeInformation] | None = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError(f"OutputTag: tag_id must be a non-empty string, got {tag_id!r}")
        self.tag_id = tag_id
        self.type_info = _element_type(type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id and self.type_info == other.type_info

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info})"


def _element_type(type_info: TypeInformation | Sequence[TypeInformation] | None) -> TypeInformation:
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(type_info, TypeInformation):
        return type_info
    if isinstance(type_info, list):
        return RowTypeInfo(type_info)
    raise TypeError(
        f"OutputTag: type_info must be a TypeInformation, a list of them or None, got {type(type_info).__name__}"
    )
