"""`kill -9` of the bridge or of the app at random moments while accepted sends are worked off.

What must hold afterwards: every accepted send is in the app's journal exactly once and its
action succeeded; or its action is `uncertain` with evidence, and it is there at most once.
Nothing is left running.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import trio

from bridge.polling import poll
from bridge.process import Child, Record
from tests.support.bridge import BridgeProcess, bridge_process

CONTACTS = {"Alice": "alice", "Bob": "bob", "张三": "zhangsan", "lilei.2": "lilei.2"}


@dataclass
class Report:
    """What a campaign did and found."""

    accepted: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    succeeded: int = 0
    uncertain: int = 0
    uncertain_done: int = 0
    """Uncertain ones that the journal shows."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        lines = [
            f"{self.accepted} accepted; killed: {killed or 'nothing'}",
            f"{self.succeeded} succeeded, {self.uncertain} uncertain "
            f"({self.uncertain_done} of them are in the journal)",
            *self.problems,
        ]
        return "\n".join(lines)


async def kill_campaign(
    state_dir: Path, *, sends: int, kills: int, seed: int, victims: tuple[str, ...]
) -> Report:
    """Accept `sends` texts, kill `kills` times in between, let everything settle, compare."""
    chance = random.Random(seed)
    report = Report()
    async with bridge_process(state_dir) as it:
        await _accept(it, sends, report)
        for _ in range(kills):
            # anywhere in a flow: searching, pasting, between mark and key, verifying
            victim = chance.choice(victims)
            report.kills[victim] += 1
            if victim == "bridge":
                await trio.sleep(chance.uniform(0.05, 2.5))
                await it.kill(signal.SIGKILL)
                await it.start()
            else:
                await _kill_app(it, chance.uniform(0.05, 2.5))
        await it.settled(60 + sends * 4)
        await _compare(it, sends, report)
    return report


async def _accept(it: BridgeProcess, sends: int, report: Report) -> None:
    names = list(CONTACTS)
    for n in range(sends):
        response = await it.send(
            names[n % len(names)],
            f"message {n}",
            Prefer="respond-async",
            **{"Idempotency-Key": f"key-{n}"},
        )
        assert response.status_code == 202, response.text
        report.accepted += 1


async def _kill_app(it: BridgeProcess, after: float) -> None:
    async def ready() -> bool | None:
        return True if (await it.http.get("/readyz")).status_code == 200 else None

    assert await poll(ready, 60), f"the app does not come back:\n{it.log()}"
    await trio.sleep(after)
    known = Record(it.state_dir / "run" / "app.json").read()
    child = None if known is None else Child.adopt(known[0])
    if child is None:
        return  # it has ended by itself in this very moment
    child.signal(signal.SIGKILL)
    child.close()


async def _compare(it: BridgeProcess, sends: int, report: Report) -> None:
    sent = Counter(it.sent())
    names = list(CONTACTS)
    actions = {a["params"]["text"]: a for a in await it.all_actions(kind="send_text")}
    for n in range(sends):
        text, account = f"message {n}", CONTACTS[names[n % len(names)]]
        action, times = actions.get(text), sent.pop((account, text), 0)
        if action is None:
            report.problems.append(f"{text}: accepted and forgotten")
        elif action["state"] == "succeeded":
            report.succeeded += 1
            if times != 1:
                report.problems.append(f"{text}: succeeded, {times} times in the journal")
        elif action["state"] == "uncertain":
            report.uncertain += 1
            report.uncertain_done += times
            if times > 1:
                report.problems.append(f"{text}: uncertain, {times} times in the journal")
            if not action["evidence"]:
                report.problems.append(f"{text}: uncertain without evidence")
        else:
            report.problems.append(f"{text}: {action['state']} {action['error']}")
    report.problems += [f"{what} was sent {times} times unasked" for what, times in sent.items()]
