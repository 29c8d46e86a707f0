"""The core of deskbridge: actions, policy, scheduler, store, seat and the app adapters."""
