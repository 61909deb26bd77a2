"""What a job that did not finish leaves to continue from, in words for its user."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.checkpoint.options import CheckpointOptions
from penstock.common import config_keys as keys


@dataclass(frozen=True)
class LeftCheckpoint:
    """The newest checkpoint of a job that has ended. It may have been removed with the others."""

    path: str
    options: CheckpointOptions

    def after_loss(self) -> str:
        """Of a job that was suspended, whose checkpoints nobody has removed."""
        if self.options.directory is None:
            return f"Its checkpoints are gone with its process: {keys.CHECKPOINT_DIR.key} is not set"
        return f"Its newest checkpoint is kept: `penstock run -s {self.path} ...` continues from it"

    def after_failure(self) -> str:
        if self.options.directory is None or self.options.keeps_after("FAILED"):
            return f"{self.after_loss()}."
        return (
            f"Its checkpoints were removed: {keys.CHECKPOINT_RETENTION.key} is {self.options.retention}; "
            f"DELETE_ON_CANCELLATION and RETAIN_ON_CANCELLATION keep those of a job that fails."
        )
