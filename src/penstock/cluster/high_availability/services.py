"""High availability as it was configured: elections, and the folder that leaders share."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

from penstock.checkpoint.folders import Folder, LocalFolder, folder_at
from penstock.cluster.high_availability.election import LeaderElection
from penstock.cluster.high_availability.fence import Fence
from penstock.cluster.high_availability.job_store import JobStore
from penstock.cluster.high_availability.lease_election import LeaseElection
from penstock.cluster.high_availability.lease_files import LeaseFiles
from penstock.cluster.high_availability.lease_policy import LeasePolicy
from penstock.cluster.high_availability.options import ZOOKEEPER, HighAvailabilityOptions
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError


class HighAvailability:
    """The parts fit together: a token of `election` opens the `store`."""

    def __init__(self, options: HighAvailabilityOptions) -> None:
        self.options = options
        self._folder: Folder = folder_at(options.directory)

    @staticmethod
    def of(config: Configuration) -> HighAvailability | None:
        """None if the configuration does not ask for it."""
        options = HighAvailabilityOptions.of(config)
        return None if options is None else HighAvailability(options)

    def election(self) -> LeaderElection:
        options = self.options
        holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        if options.kind == ZOOKEEPER:
            from penstock.cluster.high_availability.zookeeper_election import ZooKeeperElection

            return ZooKeeperElection(options.quorum, options.node, options.session_ms, options.connection_ms)
        policy = LeasePolicy(holder, options.lease_ms, options.renew_ms)
        return LeaseElection(LeaseFiles(self._lease_folder()), policy, options.renew_ms)

    def _lease_folder(self) -> Path:
        if not isinstance(self._folder, LocalFolder):
            raise ConfigurationError(
                f"{keys.HA_STORAGE_DIR.key}: {self.options.directory} is not on a mounted file system, and only there "
                f"one of two processes is refused a new file; mount it, or use {keys.HIGH_AVAILABILITY.key}: zookeeper"
            )
        return Path(self._folder.path) / "leader"

    def leader_address(self) -> str | None:
        """Where the leader is found, for those who do not contend; None if none is known now."""
        election = self.election()
        try:
            return election.leader_address()
        finally:
            election.close()

    def take_over(self, token: int) -> JobStore:
        """Begin to lead: former leaders can do no harm from now on. Raises LeadershipLostError if one came later."""
        fence = Fence(self._folder.within("fence"), token)
        fence.put_up()
        return JobStore(self._folder.within("jobs"), fence)

    def with_defaults(self, config: Configuration) -> Configuration:
        """The job manager's settings, with folders that the next leader finds: for checkpoints and for ended jobs."""
        completed = Configuration(config)
        for option, name in ((keys.CHECKPOINT_DIR, "checkpoints"), (keys.ARCHIVE_DIR, "archive")):
            if completed.get_optional(option) is None:
                completed.set_string(option.key, self._folder.path_of(name))
        return completed
