"""A plain Tk window with a text field. It mirrors what happens to it, as JSON lines, to a file.

Run: python textapp.py LOG [--title T] [--class C] [--geometry G] [--hidden] [--stubborn]

Lines: {"event": "ready", "window"}, {"event": "text", "text"} after each change,
{"event": "click", "x", "y", "button"}, {"event": "release", "x", "y"}, {"event": "key", "key"},
{"event": "closed"}.
Lines on stdin are commands: freeze SECONDS, clear, popup, dialog; any other
one only writes its "done".
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tkinter as tk
from typing import TextIO


class TextApp:
    def __init__(self, options: argparse.Namespace, log: TextIO) -> None:
        self.log = log
        self.root = tk.Tk(className=options.wm_class)
        self.root.title(options.title)
        self.root.geometry(options.geometry)
        self.text = tk.Text(self.root, undo=False)
        self.text.pack(fill="both", expand=True)
        if options.stubborn:
            self.text.bind("<<Paste>>", lambda _event: "break")
            self.text.bind("<Control-v>", lambda _event: "break")
        self.text.bind("<<Modified>>", self.on_modified)
        self.root.bind("<ButtonPress>", self.on_click)
        self.root.bind("<ButtonRelease>", self.on_release)
        self.root.bind("<KeyPress>", self.on_key)
        self.root.protocol("WM_DELETE_WINDOW", self.on_close)
        if options.hidden:
            self.root.withdraw()
        self.root.createfilehandler(sys.stdin, tk.READABLE, self.on_command)
        self.root.after_idle(self.ready)

    def write(self, event: str, **data: object) -> None:
        self.log.write(json.dumps({"event": event, **data}) + "\n")
        self.log.flush()

    def ready(self) -> None:
        self.text.focus_set()
        self.root.update()
        self.write("ready", window=self.root.winfo_id())

    def on_modified(self, _event: object) -> None:
        if self.text.edit_modified():
            self.write("text", text=self.text.get("1.0", "end-1c"))
            self.text.edit_modified(False)

    def place(self, event: tk.Event) -> dict[str, int]:
        return {
            "x": event.x_root - self.root.winfo_rootx(),
            "y": event.y_root - self.root.winfo_rooty(),
        }

    def on_click(self, event: tk.Event) -> None:
        self.write("click", **self.place(event), button=event.num)

    def on_release(self, event: tk.Event) -> None:
        self.write("release", **self.place(event), button=event.num)

    def on_key(self, event: tk.Event) -> None:
        self.write("key", key=event.keysym, state=event.state)

    def on_close(self) -> None:
        self.write("closed")
        self.root.destroy()

    def on_command(self, _file: object, _mask: int) -> None:
        line = sys.stdin.readline()
        if not line:
            self.root.deletefilehandler(sys.stdin)
            return
        command, _, argument = line.strip().partition(" ")
        if command == "freeze":
            self.write("frozen")
            time.sleep(float(argument))
        elif command == "clear":
            self.text.delete("1.0", "end")
        elif command in {"popup", "dialog"}:
            popup = tk.Toplevel(self.root)
            popup.title("popup")
            popup.transient(self.root)
            if command == "dialog":
                popup.attributes("-type", "dialog")
            popup.after_idle(popup.focus_force)
        self.root.update()  # what the X server sent before this command comes first
        self.write("done", command=command)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--title", default="text")
    parser.add_argument("--class", dest="wm_class", default="Textapp")
    parser.add_argument("--geometry", default="400x300+100+80")
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--stubborn", action="store_true", help="never read the clipboard")
    options = parser.parse_args()
    with open(options.log, "a") as log:
        TextApp(options, log).root.mainloop()


if __name__ == "__main__":
    main()
