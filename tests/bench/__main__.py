"""The command behind `scripts/bench`."""

from __future__ import annotations

import argparse

import trio

from tests.bench.probe import probe_bench

BENCHES = {"probe": probe_bench}


def main() -> None:
    """Run one benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--rounds", type=int, default=200)
    wanted = parser.parse_args()
    print(trio.run(BENCHES[wanted.name], wanted.rounds))


if __name__ == "__main__":
    main()
