"""Hands-on: a person works the seat, and the queue is frozen for as long as the lease lasts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from bridge.errors import BridgeError

LEASE = 60.0
"""Seconds; renewed by acquiring again with the lease's id."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who has the seat, until when (monotonic seconds)."""

    id: str
    who: str
    until: float


class HandsOn:
    """At most one person at a time. Pure but for the ids; every method takes the time."""

    def __init__(self) -> None:
        self._lease: Lease | None = None

    def held(self, now: float) -> Lease | None:
        """The lease that holds now."""
        lease = self._lease
        return lease if lease is not None and now < lease.until else None

    def acquire(self, lease_id: str | None, who: str, now: float) -> Lease:
        """Take the seat, or renew the lease `lease_id`. HANDS_ON when somebody else has it."""
        held = self.held(now)
        if held is not None and held.id != lease_id:
            raise BridgeError(
                "HANDS_ON",
                f"{held.who} works the seat; it is free in {held.until - now:.0f} s at the latest",
                retry_after=max(1, round(held.until - now)),
                executed=False,
            )
        lease = Lease(held.id if held else secrets.token_urlsafe(12), who, now + LEASE)
        self._lease = lease
        return lease

    def release(self, lease_id: str | None, now: float) -> bool:
        """Give the seat back; False when nobody had it. HANDS_ON for somebody else's lease.

        Without an id the seat is taken back from whoever has it.
        """
        held = self.held(now)
        if held is not None and lease_id not in {None, held.id}:
            raise BridgeError(
                "HANDS_ON", f"{held.who} works the seat under another lease", executed=False
            )
        self._lease = None
        return held is not None
