"""Who may act for a job. Where several job managers stand by for each other, only the one that leads may."""

from __future__ import annotations


class JobLeadership:
    """Over a job that only this process knows: everything is granted, and nothing is remembered for others.

    High availability has another one, whose methods raise LeadershipLostError once another process leads. The job is
    then to stop as it is: without a commit, and without removing a file.
    """

    checkpoint: str | None = None
    """The job's own checkpoint, from which it continues after another process led; None if there is none."""
    used_ids = 0
    """Ids of checkpoints up to this one may have been used by those who led before."""

    def reserve(self, checkpoint_id: int) -> None:
        """Before anything is written under the id: no other leader uses it, before or after."""

    def confirm(self, checkpoint_id: int, path: str) -> None:
        """The checkpoint is written: from now on the job continues from it, under any leader.

        Before this has returned nothing of it is committed, and nothing older is removed.
        """

    def retract(self) -> None:
        """Confirming has failed or is in doubt: make sure that the job continues from the checkpoint before."""

    def check(self) -> None:
        """Raise if another leads. Ask after listing files and before removing any: a later leader's are not listed."""

    def end(self, status: str, unwanted: str | None) -> None:
        """The job is over, and no leader will continue it; `unwanted`: the folder that is to be removed then."""
