"""Leader election by a lease in a folder on a shared file system."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock.cluster.high_availability.election import CallQueue, OnGrant, OnRevoke
from penstock.cluster.high_availability.lease_files import LeaseFiles
from penstock.cluster.high_availability.lease_policy import Action, Claim, Grant, LeasePolicy, Renew, Revoke
from penstock.common.clocks import monotonic_ms

_log = logging.getLogger(__name__)


class LeaseElection:
    """Does what the policy decides, again and again. See `election.LeaderElection`."""

    def __init__(
        self, files: LeaseFiles, policy: LeasePolicy, look_every_ms: int, clock: Callable[[], int] = monotonic_ms
    ) -> None:
        self._files = files
        self._policy = policy
        self._look_every_s = look_every_ms / 1000
        self._clock = clock
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._calls: CallQueue | None = None

    def contend(self, address: str, on_grant: OnGrant, on_revoke: OnRevoke) -> None:
        self._policy.address = address
        self._on_grant, self._on_revoke = on_grant, on_revoke
        self._calls = CallQueue("penstock-leadership")
        self.look()
        self._thread = threading.Thread(target=self._run, name="penstock-lease", daemon=True)
        self._thread.start()

    @property
    def token(self) -> int | None:
        held = self._policy.held
        return None if held is None else held.token

    @property
    def is_leader(self) -> bool:
        return self.token is not None

    def leader_address(self) -> str | None:
        try:
            newest = self._files.newest()
        except (OSError, ValueError) as error:
            _log.warning("the lease of the leader cannot be read: %s", error)
            return None
        return None if newest is None or newest.is_released else newest.address or None

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None and self._calls is not None:
            self._thread.join()
            self._calls.close()
        lease = self._policy.released()
        if lease is not None:
            self._files.write(lease)

    def _run(self) -> None:
        while not self._closing.wait(self._look_every_s):
            self.look()

    def look(self) -> None:
        """Read the newest lease, and do what follows from it."""
        try:
            newest = self._files.newest()
        except (OSError, ValueError) as error:
            _log.warning("the lease of the leader cannot be read: %s", error)
            self._do(self._policy.could_not_look(self._clock()))
        else:
            self._do(self._policy.looked(newest, self._clock()))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            try:
                self._act(action)
            except OSError as error:
                _log.warning("the lease cannot be written: %s", error)
                self._do(self._policy.could_not_look(self._clock()))

    def _act(self, action: Action) -> None:
        asked_ms = self._clock()
        match action:
            case Claim(token):
                if self._files.claim(token):
                    self._do(self._policy.claimed(token, asked_ms, self._clock()))
            case Renew(lease):
                self._files.write(lease)
                self._policy.renewed(lease, asked_ms)
            case Grant(token):
                _log.info("this job manager leads now (leadership %d)", token)
                self._call(lambda: self._on_grant(token))
                self._files.forget_before(token)
            case Revoke(reason):
                _log.warning("this job manager no longer leads: %s", reason)
                self._call(self._on_revoke)

    def _call(self, function: Callable[[], None]) -> None:
        assert self._calls is not None, "contend comes first"
        self._calls.call(function)
