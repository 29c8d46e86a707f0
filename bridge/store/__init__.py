"""The durable queue: what is accepted is on disk, and every transition is told once."""

from __future__ import annotations

from bridge.config import Limits
from bridge.core_types import Filter, Page
from bridge.store.dialect import database_file
from bridge.store.flock import AlreadyHeld, FileLock, LockLost, hold_flock
from bridge.store.health import StoreHealth
from bridge.store.migrate import NewerDatabase
from bridge.store.store import OnCommit, Store, open_store
from bridge.store.values import Counts, Submitted, Sweep

__all__ = [
    "AlreadyHeld",
    "Counts",
    "FileLock",
    "Filter",
    "Limits",
    "LockLost",
    "NewerDatabase",
    "OnCommit",
    "Page",
    "Store",
    "StoreHealth",
    "Submitted",
    "Sweep",
    "database_file",
    "hold_flock",
    "open_store",
]
