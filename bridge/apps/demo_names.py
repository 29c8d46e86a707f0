"""Which contact a name was found to mean, so that the chat which is open need not be searched for.

Forgotten as soon as the app's history shows that contacts or remarks have changed, or that
somebody signed in: another contact may have the name then.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import trio

from bridge.apps.demo_view import Named
from bridge.demoapp import journal

KEPT = 64
"""Names that are remembered, the ones used last."""

_RENAMING = frozenset({"signed_in", "friend_added", "friend_accepted", "remark_set"})


class Names:
    """A bounded memory of names. `recall` asks the history first."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._read_to = 0
        self._known: OrderedDict[str, Named] = OrderedDict()

    async def recall(self, wanted: str) -> Named | None:
        """Whom the name meant, if nothing has happened since that could change it."""
        if await trio.to_thread.run_sync(self._renamed):
            self._known.clear()
        found = self._known.get(wanted)
        if found is not None:
            self._known.move_to_end(wanted)
        return found

    def keep(self, wanted: str, found: Named) -> None:
        """Remember whom a search found, and only, by this name."""
        self._known[wanted] = found
        self._known.move_to_end(wanted)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)

    def _renamed(self) -> bool:
        """Whether the history holds a change of names beyond the place that was read to."""
        start, self._read_to = self._read_to, journal.size(self._state_dir)
        return any(
            entry.get("effect") in _RENAMING for entry in journal.entries(self._state_dir, start)
        )
