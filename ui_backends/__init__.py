"""The only code that talks to X11 or starts xdotool and scrot."""
