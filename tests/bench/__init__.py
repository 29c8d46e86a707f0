"""Benchmarks: figures beside a yardstick of the same run; never a limit in a test."""
