"""Fault campaigns: long runs by `scripts/faults`, short forms among the tests."""
