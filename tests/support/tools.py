"""Stand-ins on PATH for xdotool and scrot that run the real ones, unless told to misbehave."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_WRAPPER = """\
#!/bin/sh
# Runs the real tool; one armed call behaves as its flag file says.
flags="{folder}"
if [ -e "$flags/{name}-stop" ]; then
    rm "$flags/{name}-stop"
    echo $$ > "$flags/{name}-stopped"
    kill -STOP $$
fi
if [ -e "$flags/{name}-die-in-return" ]; then
    case " $* " in *" Return "*)
        rm "$flags/{name}-die-in-return"
        "{real}" keydown Return
        kill -KILL $$
    esac
fi
exec "{real}" "$@"
"""


class Tools:
    """A folder with the stand-ins; put `path` into the bridge's PATH."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        for name in ("xdotool", "scrot"):
            real = shutil.which(name)
            assert real is not None, f"{name} is not installed"
            script = folder / name
            script.write_text(_WRAPPER.format(folder=folder, name=name, real=real))
            script.chmod(0o755)

    @property
    def path(self) -> str:
        """A PATH with the stand-ins first."""
        return f"{self._folder}:{os.environ['PATH']}"

    def stop_next(self, name: str) -> None:
        """The next call of the tool stops itself (SIGSTOP) before it does anything."""
        (self._folder / f"{name}-stop").touch()

    def die_in_return(self) -> None:
        """The next xdotool that presses Return dies with the key down."""
        (self._folder / "xdotool-die-in-return").touch()

    def armed(self, name: str) -> bool:
        """Whether a flag for the tool still waits for its call."""
        return any(
            path.suffix == ""
            for path in self._folder.glob(f"{name}-*")
            if "stopped" not in path.name
        )

    def stopped_pid(self, name: str) -> int:
        """The pid of the call that stopped itself."""
        return int((self._folder / f"{name}-stopped").read_text())
