"""The demo chat app: a program with a real window that the bridge can be tried on."""
