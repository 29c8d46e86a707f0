"""App adapters: each teaches the bridge one app."""
