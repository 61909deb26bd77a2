"""Leader election by ZooKeeper: of the contenders that live, the first to register leads."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any

from penstock.cluster.high_availability.election import CallQueue, OnGrant, OnRevoke
from penstock.common import config_keys as keys
from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.optional_packages import optional_package

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 2.0
"""A look costs little. ZooKeeper reports changes at once; this is for what it cannot report."""
_SEQUENCE_DIGITS = 10


class ZooKeeperElection:
    """A contender is an ephemeral sequential node, which goes with its session. See `election.LeaderElection`.

    The token is the number of the transaction that made the node: it grows, and every leadership has a node of its own.
    A leader that loses the connection no longer leads, because it cannot know how long its session will live.
    """

    def __init__(self, quorum: str, node: str, session_ms: int, connection_ms: int) -> None:
        user = f"{keys.HIGH_AVAILABILITY.key} zookeeper"
        self._exceptions = optional_package("kazoo.exceptions", "zookeeper", user)
        self._quorum = quorum
        self._node = node
        self._connection_s = connection_ms / 1000
        kazoo = optional_package("kazoo.client", "zookeeper", user)
        retry = {"max_tries": -1, "delay": 0.1, "max_delay": _LOOK_EVERY_S}
        self._client = kazoo.KazooClient(hosts=quorum, timeout=session_ms / 1000, connection_retry=retry)
        self._name = f"contender-{uuid.uuid4()}-"
        self._address = ""
        self._lock = threading.Lock()
        self._own: str | None = None
        """The node of this contender; None if it has to register."""
        self._token: int | None = None
        self._known_address: str | None = None
        self._changed = threading.Event()
        self._is_closing = False
        self._thread: threading.Thread | None = None
        self._calls: CallQueue | None = None

    def contend(self, address: str, on_grant: OnGrant, on_revoke: OnRevoke) -> None:
        self._address = address
        self._on_grant, self._on_revoke = on_grant, on_revoke
        self._calls = CallQueue("penstock-leadership")
        self._client.add_listener(self._connection_changed)
        self._connect()
        self._thread = threading.Thread(target=self._run, name="penstock-zookeeper", daemon=True)
        self._thread.start()

    @property
    def token(self) -> int | None:
        return self._token

    @property
    def is_leader(self) -> bool:
        return self._token is not None

    def leader_address(self) -> str | None:
        if self._thread is None:
            self._connect()
            try:
                self._look_for_leader(self._contenders())
            except self._exceptions.KazooException as error:
                raise EnvironmentSetupError(
                    f"{keys.ZOOKEEPER_QUORUM.key}: {self._quorum} cannot say which job manager leads "
                    f"({str(error) or type(error).__name__})"
                ) from error
        return self._known_address

    def close(self) -> None:
        self._is_closing = True
        self._changed.set()
        if self._thread is not None and self._calls is not None:
            self._thread.join()
            self._calls.close()
        self._token = None
        self._client.stop()  # Ends the session, and with it the node.
        self._client.close()

    def _connect(self) -> None:
        try:
            self._client.start(timeout=self._connection_s)
        except self._client.handler.timeout_exception as error:
            raise EnvironmentSetupError(
                f"{keys.ZOOKEEPER_QUORUM.key}: no server of {self._quorum} has answered within "
                f"{self._connection_s:g} s; is ZooKeeper running there?"
            ) from error

    # --- contending ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing:
            self._changed.clear()
            try:
                if self._client.connected:
                    self._look()
            except self._exceptions.KazooException as error:
                _log.warning("ZooKeeper cannot be asked: %s", error or type(error).__name__)
                self._lose("ZooKeeper cannot be asked")
            self._changed.wait(_LOOK_EVERY_S)

    def _look(self) -> None:
        own = self._own or self._register()
        names = self._contenders(watch=lambda _: self._changed.set())
        self._look_for_leader(names)
        if own not in names:
            self._lose("its session has ended")
            self._changed.set()
        elif names[0] == own:
            self._lead(own)

    def _register(self) -> str:
        """Create this contender's node, after removing its former ones and those whose creation was not answered."""
        self._client.ensure_path(self._node)
        for name in self._contenders():
            if name.startswith(self._name):
                self._delete(name)
        value = json.dumps({"address": self._address}).encode()
        path = self._client.create(f"{self._node}/{self._name}", value, ephemeral=True, sequence=True)
        self._own = str(path).rpartition("/")[2]
        return self._own

    def _contenders(self, watch: Callable[[Any], None] | None = None) -> list[str]:
        """The names of all nodes, oldest first."""
        try:
            names = self._client.get_children(self._node, watch=watch)
        except self._exceptions.NoNodeError:
            return []
        return sorted(names, key=lambda name: name[-_SEQUENCE_DIGITS:])

    def _delete(self, name: str) -> None:
        try:
            self._client.delete(f"{self._node}/{name}")
        except self._exceptions.NoNodeError:
            _log.debug("%s has gone by itself", name)

    def _look_for_leader(self, names: list[str]) -> None:
        try:
            value = self._client.get(f"{self._node}/{names[0]}")[0] if names else None
        except self._exceptions.NoNodeError:  # It has ended at this moment.
            value = None
        self._known_address = None if value is None else json.loads(value)["address"]

    def _lead(self, own: str) -> None:
        if self._token is not None:
            return
        stat = self._client.exists(f"{self._node}/{own}")
        with self._lock:
            if stat is None or self._own != own:  # The connection was lost in between.
                return
            token = self._token = int(stat.czxid)
        _log.info("this job manager leads now (leadership %d)", token)
        self._call(lambda: self._on_grant(token))

    def _connection_changed(self, state: Any) -> None:
        if state != "CONNECTED":
            self._lose(f"the connection to ZooKeeper is {str(state).lower()}")
        self._changed.set()

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._own = None
            was_leader, self._token = self._token is not None, None
        if was_leader and not self._is_closing:
            _log.warning("this job manager no longer leads: %s", reason)
            self._call(self._on_revoke)

    def _call(self, function: Callable[[], None]) -> None:
        assert self._calls is not None, "contend comes first"
        self._calls.call(function)
