"""Window facts, read from the X server through python-xlib.

Every function takes an open connection and blocks; run it by `XConnection.call`. Windows that
vanish while a list is read are left out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from Xlib import X, Xatom, Xutil, error
from Xlib.display import Display
from Xlib.ext import res
from Xlib.protocol import event

from ui_backends.base import Region, Window, WindowId, WindowNotFound
from ui_backends.xconn import whole_property

_GONE = (error.BadWindow, error.BadDrawable)


def _window(display: Display, window: WindowId) -> Any:
    return display.create_resource_object("window", window)


def _property(display: Display, window: WindowId, name: str, kind: int = X.AnyPropertyType) -> Any:
    """A property's value (bytes, or a sequence of numbers), None when it is not set."""
    found = whole_property(_window(display, window), display.intern_atom(name), kind)
    return None if found is None else found.value


def _numbers(value: Any) -> list[int]:
    return [] if value is None or isinstance(value, (bytes, str)) else [int(n) for n in value]


def _text(value: Any, encoding: str = "utf-8") -> str:
    return value.decode(encoding, "replace") if isinstance(value, bytes) else str(value or "")


def _root(display: Display) -> Any:
    return display.screen().root


def managed(display: Display) -> list[WindowId]:
    """The window manager's list of client windows, oldest first; empty without one."""
    return _numbers(_property(display, _root(display).id, "_NET_CLIENT_LIST"))


def supporting_wm(display: Display) -> WindowId | None:
    """The running window manager's check window, None when none runs (EWMH)."""
    root = _root(display).id
    try:
        for window in _numbers(_property(display, root, "_NET_SUPPORTING_WM_CHECK")):
            if _numbers(_property(display, window, "_NET_SUPPORTING_WM_CHECK")) == [window]:
                return window
    except _GONE:
        pass  # left over from a window manager that has ended
    return None


def same_client(display: Display, one: int, other: int) -> bool:
    """Whether two resource ids were made by the same connection."""
    info: Any = display.display.info
    return not (one ^ other) & ~info.resource_id_mask


def title_of(display: Display, window: WindowId) -> str:
    """`_NET_WM_NAME`, else `WM_NAME`, else nothing."""
    name = _property(display, window, "_NET_WM_NAME")
    if name is not None:
        return _text(name)
    found = whole_property(_window(display, window), Xatom.WM_NAME)
    if found is None:
        return ""
    latin = found.property_type == Xatom.STRING
    return _text(found.value, "latin-1" if latin else "utf-8")


def _class_of(display: Display, window: WindowId) -> tuple[str, str]:
    parts = _text(_property(display, window, "WM_CLASS")).split("\0")
    return (parts[0], parts[1]) if len(parts) > 1 else (parts[0], "")


def pid_of(display: Display, window: WindowId) -> int | None:
    """The local process that made the window, by the X server itself (X-Resource 1.2)."""
    if not display.has_extension("X-Resource"):
        return None
    wanted: Any = [{"client": window, "mask": res.LocalClientPIDMask}]
    answer: Any = res.query_client_ids(display, wanted)
    for entry in answer.ids:
        if entry.spec.mask == res.LocalClientPIDMask and entry.value:
            return int(getattr(entry.value[0], "value", entry.value[0]))
    return None


def region_of(display: Display, window: WindowId) -> Region:
    """The client area in screen pixels; decorations do not matter here."""
    handle = _window(display, window)
    size = handle.get_geometry()
    corner = _root(display).translate_coords(handle, 0, 0)
    return Region(int(corner.x), int(corner.y), int(size.width), int(size.height))


def _viewable(display: Display, window: WindowId) -> bool:
    attributes = _window(display, window).get_attributes()
    if attributes.map_state != X.IsViewable:
        return False
    state = _numbers(_property(display, window, "WM_STATE"))
    return not state or state[0] == Xutil.NormalState


def read_window(display: Display, window: WindowId, listed: Sequence[WindowId]) -> Window:
    """One window; `listed` is `managed(display)`. Raises WindowNotFound."""
    try:
        return _read(display, window, listed)
    except _GONE as failure:
        raise WindowNotFound(f"window {window:#x} is gone") from failure


def _read(display: Display, window: WindowId, listed: Sequence[WindowId]) -> Window:
    kinds = _numbers(_property(display, window, "_NET_WM_WINDOW_TYPE"))
    states = _numbers(_property(display, window, "_NET_WM_STATE"))
    owner = _numbers(_property(display, window, "WM_TRANSIENT_FOR"))
    return Window(
        id=window,
        title=title_of(display, window),
        wm_class=_class_of(display, window),
        role=_text(_property(display, window, "WM_WINDOW_ROLE")),
        pid=pid_of(display, window),
        region=region_of(display, window),
        viewable=_viewable(display, window),
        managed=window in listed,
        dialog=display.intern_atom("_NET_WM_WINDOW_TYPE_DIALOG") in kinds,
        modal=display.intern_atom("_NET_WM_STATE_MODAL") in states,
        transient_for=owner[0] if owner and owner[0] else None,
    )


def list_windows(display: Display) -> list[Window]:
    """The managed windows, then viewable top-level ones that are not the window manager's."""
    listed = managed(display)
    found = []
    for window in [*listed, *_unmanaged(display, listed)]:
        try:
            found.append(_read(display, window, listed))
        except _GONE:
            continue
    return found


def _unmanaged(display: Display, listed: Sequence[WindowId]) -> Iterator[WindowId]:
    """Viewable top-level windows that nobody manages: menus, popups; all without a manager."""
    manager = supporting_wm(display)
    own: Any = display.display.info
    for child in _root(display).query_tree().children:
        ours = same_client(display, child.id, own.resource_id_base)
        theirs = manager is not None and same_client(display, child.id, manager)
        if child.id in listed or ours or theirs:
            continue
        try:
            attributes = child.get_attributes()
        except _GONE:
            continue
        if attributes.map_state == X.IsViewable and attributes.win_class == X.InputOutput:
            yield child.id


def _ancestors(display: Display, window: WindowId) -> Iterator[WindowId]:
    """The window, its parent, and so on up to the root's child."""
    root = _root(display).id
    while window and window != root:
        yield window
        parent = _window(display, window).query_tree().parent
        window = parent.id if hasattr(parent, "id") else 0


def top_level(display: Display, window: WindowId) -> WindowId | None:
    """The managed ancestor of a window (or itself), else the top-level one that holds it."""
    listed = managed(display)
    last = None
    for ancestor in _ancestors(display, window):
        if ancestor in listed:
            return ancestor
        last = ancestor
    manager = supporting_wm(display)
    if last is None or (manager is not None and same_client(display, last, manager)):
        return None
    return last


def active_window(display: Display) -> WindowId | None:
    """The top-level window with the X input focus; None when no app has it."""
    focus = display.get_input_focus().focus
    if isinstance(focus, int):  # None or PointerRoot
        return None
    try:
        return top_level(display, focus.id)
    except _GONE:
        return None


def window_at(display: Display, x: int, y: int) -> WindowId | None:
    """The top-level window that gets a click at a point of the screen, None for the root."""
    root = _root(display)
    inner, child = root, root.translate_coords(root, x, y).child
    try:
        while not isinstance(child, int):
            inner, child = child, child.translate_coords(root, x, y).child
        return None if inner.id == root.id else top_level(display, inner.id)
    except _GONE:
        return None


def pointer_position(display: Display) -> tuple[int, int]:
    """Where the pointer is on the screen."""
    found = _root(display).query_pointer()
    return int(found.root_x), int(found.root_y)


def screen_size(display: Display) -> tuple[int, int]:
    """Width and height of the screen in pixels, as they are now."""
    size = _root(display).get_geometry()
    return int(size.width), int(size.height)


def request_close(display: Display, window: WindowId) -> None:
    """Ask the app to close a window, as a click on its close button does. Raises WindowNotFound."""
    handle = _window(display, window)
    protocols = _numbers(_property(display, window, "WM_PROTOCOLS"))
    delete = display.intern_atom("WM_DELETE_WINDOW")
    if delete not in protocols:
        raise WindowNotFound(f"window {window:#x} takes no request to close")
    message = event.ClientMessage(
        window=handle,
        client_type=display.intern_atom("WM_PROTOCOLS"),
        data=(32, [delete, X.CurrentTime, 0, 0, 0]),
    )
    handle.send_event(message, event_mask=X.NoEventMask)
    display.sync()
