"""How many events a second the classic group coordinator takes on one core.

    python -m conformance.benchmarks.group

Three members: heartbeats of a stable group, rounds in which all join again, and whole lives of a group with all that
its members do. CPU time; the median of several rounds, in which all take turns. Ends with 1 below the floor.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Final

from conformance.models.group.coordinator import Coordinator
from conformance.models.group.rules import Rules
from conformance.models.group.state import REBALANCE, State
from conformance.models.group.words import (
    Commit,
    Event,
    Fetch,
    Fired,
    Heartbeat,
    Join,
    Leave,
    Sync,
    Written,
)

GOAL: Final = 100_000
"""Events a second of each kind on a core of our own; FLOOR is what a slow and busy machine shall reach too."""
FLOOR: Final = 40_000
ROUNDS: Final = 9
SLICE_S: Final = 0.1
RELEASES: Final = ("1.1.1", "3.9.2", "4.4.0")
MEMBERS: Final = ("a", "b", "c")
PROTOCOLS: Final = (("range", b"\0\1" * 20), ("roundrobin", b"\0\2" * 20))


class Script:
    """Events for one coordinator, each made for the state that those before it lead to."""

    def __init__(self, release: str) -> None:
        self.coordinator = Coordinator(Rules.of(release))
        self.newest = {
            request: versions[-1] for request, versions in self.coordinator.rules.versions.items() if versions
        }
        self.state = self.coordinator.initial()
        self.events: list[Event] = []

    def say(self, event: Event) -> None:
        self.events.append(event)
        self.state = self.coordinator.step(self.state, event).state

    def begin(self) -> State:
        """From here on."""
        self.events = []
        return self.state

    def round(self) -> None:
        for id in MEMBERS:
            self.say(Join(self.newest[Join], id, None, "consumer", PROTOCOLS, fresh=id, request=len(self.events)))
        self.synced()

    def synced(self) -> None:
        given = tuple((id, b"\0\1" * 10) for id in MEMBERS)
        for id in reversed(MEMBERS):
            said = (self.state.generation, given if self.state.leader == id else (), "consumer", self.state.protocol)
            self.say(Sync(self.newest[Sync], id, None, *said, len(self.events)))
        self.say(Written())

    def founded(self) -> None:
        for id in MEMBERS:
            first = Join(self.newest[Join], "", None, "consumer", PROTOCOLS, fresh=id, request=len(self.events))
            self.say(first)
            if self.state.writes:
                self.say(Written())
            if id in self.state.pending:
                self.say(Join(self.newest[Join], id, None, "consumer", PROTOCOLS, request=len(self.events)))
        while self.state.initial:
            self.say(Fired(REBALANCE))
        self.synced()

    def beats(self, times: int) -> None:
        for serial in range(times):
            id = MEMBERS[serial % len(MEMBERS)]
            self.say(Heartbeat(self.newest[Heartbeat], id, None, self.state.generation, len(self.events)))

    def life(self) -> None:
        self.founded()
        self.beats(12)
        for id in MEMBERS:
            said = (self.newest[Commit], id, None, self.state.generation, (("t", 0, 7), ("t", 1, 8)), len(self.events))
            self.say(Commit(*said))
            self.say(Written())
        self.round()
        self.say(Fetch(self.newest[Fetch], len(self.events)))
        self.beats(12)
        for id in MEMBERS:
            self.say(Leave(min(self.newest[Leave], 2), ((id, None),), len(self.events)))
            if self.state.writes:
                self.say(Written())


def heartbeats(release: str) -> tuple[Coordinator, State, list[Event]]:
    script = Script(release)
    script.founded()
    start = script.begin()
    script.beats(300)
    return script.coordinator, start, script.events


def rounds(release: str) -> tuple[Coordinator, State, list[Event]]:
    script = Script(release)
    script.founded()
    start = script.begin()
    for _ in range(40):
        script.round()
    return script.coordinator, start, script.events


def lives(release: str) -> tuple[Coordinator, State, list[Event]]:
    script = Script(release)
    start = script.begin()
    for _ in range(6):
        script.life()
    return script.coordinator, start, script.events


KINDS: Final[tuple[Callable[[str], tuple[Coordinator, State, list[Event]]], ...]] = (heartbeats, rounds, lives)


def seconds(coordinator: Coordinator, start: State, events: list[Event], times: int) -> float:
    """CPU time of one event."""
    step = coordinator.step
    began = process_time()
    for _ in range(times):
        state = start
        for event in events:
            state = step(state, event).state
    return (process_time() - began) / (times * len(events))


def measured() -> Iterator[tuple[str, str, float]]:
    jobs = {(kind.__name__, release): kind(release) for kind in KINDS for release in RELEASES}
    times = {job: max(1, round(SLICE_S / (seconds(*jobs[job], 1) * len(jobs[job][2])))) for job in jobs}
    taken: dict[tuple[str, str], list[float]] = {job: [] for job in jobs}
    for _ in range(ROUNDS):
        for job in jobs:
            taken[job].append(seconds(*jobs[job], times[job]))
    for (kind, release), found in taken.items():
        yield kind, release, 1 / median(found)


def main() -> int:
    gc.collect()
    gc.freeze()
    slowest = float("inf")
    print("events a second".ljust(18) + "".join(f"{release:>12}" for release in RELEASES))
    rows: dict[str, list[float]] = {}
    for kind, _, rate in measured():
        rows.setdefault(kind, []).append(rate)
    for kind, rates in rows.items():
        slowest = min(slowest, *rates)
        print(kind.ljust(18) + "".join(f"{rate:12,.0f}" for rate in rates))
    print(f"slowest {slowest:,.0f} (goal {GOAL:,}, floor {FLOOR:,})")
    if slowest < FLOOR:
        print("the coordinator is below the floor", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
