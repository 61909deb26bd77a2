"""Batch or streaming: decided when the job is complete, because only then all its sources are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from penstock.common.exceptions import InvalidProgramError
from penstock.graph.descriptions import (
    OperatorDescription,
    ReduceDescription,
    SourceDescription,
    WatermarksDescription,
)

RuntimeMode = Literal["STREAMING", "BATCH", "AUTOMATIC"]


def is_batch_job(mode: RuntimeMode, sources: Mapping[str, OperatorDescription]) -> bool:
    """True if the job runs in batch mode; raises if it was asked to and a source never ends."""
    if mode == "STREAMING":
        return False
    endless = [name for name, source in sources.items() if not cast(SourceDescription, source).is_bounded]
    if endless and mode == "BATCH":
        named = ", ".join(f"'{name}'" for name in endless)
        raise InvalidProgramError(
            f"the job is to run in BATCH mode, but does not end by itself: {named} is unbounded; use a bounded source, "
            f"or set the runtime mode to STREAMING or AUTOMATIC"
        )
    return not endless


def as_batch_operator(operator: OperatorDescription) -> OperatorDescription:
    """The operator as it works in batch mode: final results instead of rolling ones."""
    match operator:
        case ReduceDescription() | WatermarksDescription():
            return replace(operator, only_final=True)
        case SourceDescription(watermarks=WatermarksDescription() as watermarks):
            return replace(operator, watermarks=replace(watermarks, only_final=True))
    return operator
