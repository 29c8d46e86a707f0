"""A clipboard manager of the rude kind: it takes the clipboard back whenever it loses it.

Run as a program with a display's name; it prints a line when it has taken both selections.
"""

from __future__ import annotations

import sys
from typing import Any

from Xlib import X
from Xlib.display import Display


def main(name: str) -> None:
    display = Display(name)
    window: Any = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    clipboard = display.intern_atom("CLIPBOARD")
    for atom in (display.intern_atom("CLIPBOARD_MANAGER"), clipboard):
        window.set_selection_owner(atom, X.CurrentTime)
    display.sync()
    print("ready", flush=True)
    while True:
        event: Any = display.next_event()
        if event.type == X.SelectionClear and event.atom == clipboard:
            window.set_selection_owner(clipboard, X.CurrentTime)
            display.sync()


if __name__ == "__main__":
    main(sys.argv[1])
