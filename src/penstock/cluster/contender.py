"""A job manager that stands by, and takes jobs while it leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse, Response

from penstock.cluster.high_availability.services import HighAvailability
from penstock.cluster.leader import Leader
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, LeadershipLostError
from penstock.rest.client import LEADERSHIP
from penstock.rest.polling import poll
from penstock.rest.security.browser_guard import BrowserGuard

_log = logging.getLogger(__name__)

_ENDS = "the job manager ends"


class Contender:
    """Leads for as long as the election grants it. As an application it answers requests, or refers to the leader."""

    revoked_within_s = 30.0

    def __init__(
        self,
        config: Configuration,
        high_availability: HighAvailability,
        folder: Path,
        address: str,
        shut_down: Callable[[], None],
    ) -> None:
        self._config = high_availability.with_defaults(config)
        self._high_availability = high_availability
        self._election = high_availability.election()
        self._folder = folder
        self._address = address
        self._shut_down = shut_down
        self._leader: Leader | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self.failure: Exception | None = None
        """Why this job manager cannot lead; it then ends."""

    def contend(self) -> None:
        self._election.contend(self._address, self._granted, self._revoked)

    @property
    def app(self) -> Any:
        """The REST API of this process, whether it leads or not."""
        return BrowserGuard(self, self._config.get_optional(keys.REST_ADDRESS))

    @property
    def leader(self) -> Leader | None:
        """What answers while this job manager leads."""
        return self._leader

    def close(self) -> None:
        """Leave the jobs and the leadership to another one."""
        with self._lock:
            self._is_closed = True  # A leadership that begins at this moment ends before the election does.
        self._suspend(_ENDS)
        self._election.close()

    def _granted(self, token: int) -> None:
        if self._is_closed:
            return
        try:
            store = self._high_availability.take_over(token)
            leader = Leader(self._config, self._folder / f"leadership-{token}", self._shut_down, store)
            try:
                leader.recover()
            except BaseException as error:
                leader.suspend(LeadershipLostError(str(error)))
                raise
            self._begin(leader)
        except LeadershipLostError as lost:
            _log.warning("leadership %d was over before it began: %s", token, lost)
            self._check_is_revoked(token, lost)
        except Exception as error:  # Another one may do better
            _log.exception("this job manager cannot lead")
            self.failure = error
            self._shut_down()

    def _begin(self, leader: Leader) -> None:
        with self._lock:
            if not self._is_closed:
                self._leader = leader
                return
        leader.suspend(LeadershipLostError(_ENDS))

    def _check_is_revoked(self, token: int, lost: LeadershipLostError) -> None:
        """The election learns of the later leadership, too, unless it is another one that has granted that."""
        options = self._high_availability.options
        if poll(lambda: None if self._election.token == token else True, self.revoked_within_s) is None:
            self.failure = ConfigurationError(
                f"{options.directory} remembers a later leadership than {token}, which {options.kind} has just given "
                f"({lost}): the folder was used with another {keys.HIGH_AVAILABILITY.key}, or what {options.kind} knew "
                f"is gone; choose another {keys.HA_CLUSTER_ID.key}, or stop all job managers and remove the folder"
            )
            self._shut_down()

    def _revoked(self) -> None:
        self._suspend("another job manager leads, or this one was silent for too long")

    def _suspend(self, reason: str) -> None:
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.suspend(LeadershipLostError(reason))

    # --- as an application -----------------------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].removeprefix("/v1") == LEADERSHIP:
            await JSONResponse(await run_in_threadpool(self._status))(scope, receive, send)
            return
        leader = self._leader
        answering = await run_in_threadpool(self._referral, scope) if leader is None else leader.app
        await answering(scope, receive, send)

    def _status(self) -> dict[str, Any]:
        is_leader = self._leader is not None
        return {
            "role": "leader" if is_leader else "standby",
            "leader": self._address if is_leader else self._other_leader(),
            "leadership": self._election.token if is_leader else None,
            "type": self._high_availability.options.kind,
            "storage": self._high_availability.options.directory,
        }

    def _other_leader(self) -> str | None:
        """The address of another leader; None if none is known, or the election still names this process."""
        address = self._election.leader_address()
        return None if address == self._address else address

    def _referral(self, scope: Any) -> Response:
        """Refers the request to the leader."""
        address = self._other_leader()
        if address is None:
            message = f"the job manager at {self._address} stands by, and none is known to lead now; ask again soon"
            return JSONResponse({"errors": [message]}, 503)
        query = scope.get("query_string", b"").decode("latin-1")
        return RedirectResponse(f"{scope['scheme']}://{address}{scope['path']}" + (f"?{query}" if query else ""), 307)
