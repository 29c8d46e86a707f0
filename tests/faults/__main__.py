"""The command behind `scripts/faults`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from tests.faults.kill import kill_campaign


def main() -> int:
    """Run the campaign's rounds; 1 when any found a problem."""
    parser = argparse.ArgumentParser(
        prog="scripts/faults",
        description="Kill the bridge and its app at random moments and compare with the truth.",
    )
    parser.add_argument("--rounds", type=int, default=1, help="campaigns, each with a new seed")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--sends", type=int, default=200, help="accepted sends a round")
    parser.add_argument("--kills", type=int, default=40, help="kills a round")
    parser.add_argument("--victim", choices=("bridge", "app", "both"), default="both")
    wanted = parser.parse_args()
    victims = ("bridge", "app") if wanted.victim == "both" else (wanted.victim,)
    failed = 0
    for seed in range(wanted.seed, wanted.seed + wanted.rounds):
        with tempfile.TemporaryDirectory(prefix="deskbridge-faults-") as folder:

            async def campaign(seed: int = seed, folder: str = folder) -> bool:
                report = await kill_campaign(
                    Path(folder) / "state",
                    sends=wanted.sends,
                    kills=wanted.kills,
                    seed=seed,
                    victims=victims,
                )
                print(f"seed {seed}: {report}", flush=True)
                return bool(report.problems)

            failed += trio.run(campaign)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
