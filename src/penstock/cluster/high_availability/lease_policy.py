"""Decides when a lease is claimed, renewed and given up. Holds no clock, file or thread."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Lease:
    """A leadership, as all contenders see it."""

    token: int
    holder: str = ""
    address: str = ""
    beat: int = 0
    """Grows while the holder lives."""
    is_released: bool = False


@dataclass(frozen=True)
class Claim:
    """Try to get this token."""

    token: int


@dataclass(frozen=True)
class Renew:
    """Show a sign of life."""

    lease: Lease


@dataclass(frozen=True)
class Grant:
    token: int


@dataclass(frozen=True)
class Revoke:
    reason: str


Action = Claim | Renew | Grant | Revoke


class LeasePolicy:
    """The decisions of one contender.

    Times are those of one clock that never goes back, the contender's own; no times of two machines are compared. A
    lease has expired for others when they have seen it unchanged for `lease_ms`. Its holder gives it up `renew_ms`
    earlier, counted from before its last sign of life, which is earlier than anybody can have seen that sign.
    """

    def __init__(self, holder: str, lease_ms: int, renew_ms: int) -> None:
        self._holder = holder
        self._lease_ms = lease_ms
        self._renew_ms = renew_ms
        self.address = ""
        self.held: Lease | None = None
        self._alive_ms = 0
        """When the last sign of life that arrived was begun."""
        self._seen: Lease | None = None
        self._seen_ms = 0
        """When the lease was first seen as it is."""

    def looked(self, newest: Lease | None, now_ms: int) -> list[Action]:
        """The newest lease was read; None if there was never any."""
        if self.held is None:
            return self._stand_by(newest, now_ms)
        if newest is not None and newest.token > self.held.token:
            return self._give_up(f"there is a newer leadership, {newest.token}")
        if revoked := self._expired(now_ms):
            return revoked
        return [Renew(self._next_beat())] if now_ms - self._alive_ms >= self._renew_ms else []

    def could_not_look(self, now_ms: int) -> list[Action]:
        """The storage did not answer."""
        return self._expired(now_ms)

    def _stand_by(self, newest: Lease | None, now_ms: int) -> list[Action]:
        if newest is None:
            return [Claim(1)]
        if newest != self._seen:
            self._seen, self._seen_ms = newest, now_ms
        is_free = newest.is_released or newest.holder == self._holder  # Its own: one that it has given up.
        if is_free or now_ms - self._seen_ms >= self._lease_ms:
            return [Claim(newest.token + 1)]
        return []

    def claimed(self, token: int, asked_ms: int, now_ms: int) -> list[Action]:
        """The token is this contender's; asking began at `asked_ms`."""
        self.held = Lease(token, self._holder, self.address)
        self._alive_ms = asked_ms
        # An answer that comes that late must not start anything.
        return self._expired(now_ms) or [Grant(token), Renew(self._next_beat())]

    def renewed(self, lease: Lease, asked_ms: int) -> None:
        """The sign of life arrived."""
        if self.held is not None and self.held.token == lease.token:
            self.held, self._alive_ms = lease, asked_ms

    def released(self) -> Lease | None:
        """The lease as it is left behind; this contender no longer leads."""
        held, self.held = self.held, None
        return None if held is None else replace(held, beat=held.beat + 1, is_released=True)

    def _next_beat(self) -> Lease:
        assert self.held is not None
        return replace(self.held, beat=self.held.beat + 1)

    def _expired(self, now_ms: int) -> list[Action]:
        silent_ms = now_ms - self._alive_ms
        if self.held is None or silent_ms < self._lease_ms - self._renew_ms:
            return []
        return self._give_up(f"the lease could not be renewed for {silent_ms} ms")

    def _give_up(self, reason: str) -> list[Action]:
        self.held = None
        return [Revoke(reason)]
