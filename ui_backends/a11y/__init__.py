"""Reading an app by its accessibility tree (AT-SPI over D-Bus); changes nothing on the screen.

Nothing here presses, focuses or writes: the protocol could, and then two ways of acting would
run beside each other without the display lock.
"""

from ui_backends.a11y.model import AccessibleApp, Element, Limits, Ref, Tree
from ui_backends.a11y.reader import (
    A11yReader,
    A11yUnavailable,
    AppSilent,
    ElementGone,
    open_a11y,
)

__all__ = [
    "A11yReader",
    "A11yUnavailable",
    "AccessibleApp",
    "AppSilent",
    "Element",
    "ElementGone",
    "Limits",
    "Ref",
    "Tree",
    "open_a11y",
]
