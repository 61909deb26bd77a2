"""Who may act for a job. Where several job managers stand by for each other, only the one that leads may."""

from __future__ import annotations


class JobLeadership:
    """Leadership over a job that only this process knows: all is granted, and nothing is remembered for others.

    With high availability another class takes its place, whose methods raise LeadershipLostError once another process
    leads. The job must then stop as it is: without a commit, and without removing a file.
    """

    checkpoint: str | None = None
    """The job's own checkpoint, from which it continues after another process led; None if it has none."""
    used_ids = 0
    """Former leaders may have used the ids of checkpoints up to this one."""

    def reserve(self, checkpoint_id: int) -> None:
        """Called before anything is written under the id: no other leader has used it or will."""

    def confirm(self, checkpoint_id: int, path: str) -> None:
        """The checkpoint is written: from now on the job continues from it, under any leader.

        Before this has returned nothing of it is committed, and nothing older is removed.
        """

    def retract(self) -> None:
        """Confirming has failed or is in doubt: make sure that the job continues from the checkpoint before."""

    def check(self) -> None:
        """Raise if another process leads.

        Called between listing files and removing them, so that none of a later leader's is removed.
        """

    def end(self, status: str, unwanted: str | None) -> None:
        """The job is over, and no leader will continue it; `unwanted`: the folder that is to be removed then."""
