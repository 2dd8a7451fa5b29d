"""Measures how many events a second the classic group coordinator processes on one core.

    python -m kipcheck.conformance.benchmarks.group

Three members: heartbeats of a stable group, rounds in which all members rejoin, and whole lives of a group with all
requests of its members. CPU time; the median of several rounds, in which all take turns. Exit 1 below the floor.
"""

import gc
import sys
from collections.abc import Callable
from operator import truediv
from statistics import median
from time import process_time
from typing import Final

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.state import REBALANCE, State

GOAL: Final = 100_000
"""Events a second of whole lives, on a dedicated core."""
FLOOR: Final = 16
"""The highest cost of an event of the slowest kind, in units of the cost of building an answer, which is slower on a
slow machine, too."""
ROUNDS: Final = 9
SLICE_S: Final = 0.1
RELEASES: Final = listed("measured-coordinators")
MEMBERS: Final = ("a", "b", "c")
PROTOCOLS: Final = (("range", b"\0\1" * 20), ("roundrobin", b"\0\2" * 20))


class Script:
    """Events for one coordinator, each for the state after the events before it."""

    def __init__(self, release: str) -> None:
        self.coordinator = Coordinator(Rules.of(release))
        self.newest = {
            request: versions[-1] for request, versions in self.coordinator.rules.versions.items() if versions
        }
        self.state = self.coordinator.initial()
        self.events: list[messages.Event] = []

    def add(self, event: messages.Event) -> None:
        self.events.append(event)
        self.state = self.coordinator.step(self.state, event).state

    def begin(self) -> State:
        """Starts a new list of events from the current state."""
        self.events = []
        return self.state

    def round(self) -> None:
        for id in MEMBERS:
            self.add(
                messages.Join(
                    self.newest[messages.Join], id, None, "consumer", PROTOCOLS, fresh=id, request=len(self.events)
                )
            )
        self.synced()

    def synced(self) -> None:
        given = tuple((id, b"\0\1" * 10) for id in MEMBERS)
        for id in reversed(MEMBERS):
            events = (self.state.generation, given if self.state.leader == id else (), "consumer", self.state.protocol)
            self.add(messages.Sync(self.newest[messages.Sync], id, None, *events, len(self.events)))
        self.add(messages.Written())

    def founded(self) -> None:
        for id in MEMBERS:
            first = messages.Join(
                self.newest[messages.Join], "", None, "consumer", PROTOCOLS, fresh=id, request=len(self.events)
            )
            self.add(first)
            if self.state.writes:
                self.add(messages.Written())
            if id in self.state.pending:
                self.add(
                    messages.Join(self.newest[messages.Join], id, None, "consumer", PROTOCOLS, request=len(self.events))
                )
        while self.state.initial:
            self.add(messages.Fired(REBALANCE))
        self.synced()

    def beats(self, times: int) -> None:
        for serial in range(times):
            id = MEMBERS[serial % len(MEMBERS)]
            self.add(
                messages.Heartbeat(self.newest[messages.Heartbeat], id, None, self.state.generation, len(self.events))
            )

    def life(self) -> None:
        self.founded()
        self.beats(12)
        for id in MEMBERS:
            events = (
                self.newest[messages.Commit],
                id,
                None,
                self.state.generation,
                (("t", 0, 7, -1, ""), ("t", 1, 8, -1, "")),
                len(self.events),
            )
            self.add(messages.Commit(*events))
            self.add(messages.Written())
        self.round()
        self.add(messages.Fetch(self.newest[messages.Fetch], len(self.events)))
        self.beats(12)
        for id in MEMBERS:
            self.add(messages.Leave(min(self.newest[messages.Leave], 2), ((id, None),), len(self.events)))
            if self.state.writes:
                self.add(messages.Written())


def heartbeats(release: str) -> tuple[Coordinator, State, list[messages.Event]]:
    script = Script(release)
    script.founded()
    start = script.begin()
    script.beats(300)
    return script.coordinator, start, script.events


def rounds(release: str) -> tuple[Coordinator, State, list[messages.Event]]:
    script = Script(release)
    script.founded()
    start = script.begin()
    for _ in range(40):
        script.round()
    return script.coordinator, start, script.events


def lives(release: str) -> tuple[Coordinator, State, list[messages.Event]]:
    script = Script(release)
    start = script.begin()
    for _ in range(6):
        script.life()
    return script.coordinator, start, script.events


KINDS: Final[tuple[Callable[[str], tuple[Coordinator, State, list[messages.Event]]], ...]] = (heartbeats, rounds, lives)


def seconds(coordinator: Coordinator, start: State, events: list[messages.Event], times: int) -> float:
    """CPU time of one event."""
    step = coordinator.step
    began = process_time()
    for _ in range(times):
        state = start
        for event in events:
            state = step(state, event).state
    return (process_time() - began) / (times * len(events))


def answers(times: int) -> float:
    """CPU time for building the answer to a JoinGroup alone."""
    began = process_time()
    for number in range(times):
        messages.Joined(number, messages.Error.NONE, 1, "consumer", "range", "a", "b", (), False)
    return (process_time() - began) / times


def measured() -> tuple[dict[tuple[str, str], list[float]], list[float]]:
    """CPU seconds of an event of each kind and release, and of an answer, for each round."""
    jobs = {(kind.__name__, release): kind(release) for kind in KINDS for release in RELEASES}
    times = {name: max(1, round(SLICE_S / (seconds(*job, 1) * len(job[2])))) for name, job in jobs.items()}
    taken: dict[tuple[str, str], list[float]] = {name: [] for name in jobs}
    yardstick = []
    for _ in range(ROUNDS):
        yardstick.append(answers(20_000))
        for name, job in jobs.items():
            taken[name].append(seconds(*job, times[name]))
    return taken, yardstick


def main() -> int:
    gc.collect()
    gc.freeze()
    taken, yardstick = measured()
    costs = {name: median(map(truediv, found, yardstick)) for name, found in taken.items()}
    print("events a second".ljust(18) + "".join(f"{release:>12}" for release in RELEASES) + f"{'in answers':>14}")
    for kind in KINDS:
        names = [(kind.__name__, release) for release in RELEASES]
        rates = "".join(f"{1 / median(taken[name]):12,.0f}" for name in names)
        print(kind.__name__.ljust(18) + rates + f"{max(costs[name] for name in names):14.1f}")
    print(f"answers           {1 / median(yardstick):12,.0f}")
    print(f"goal: {GOAL:,} events of lives a second; floor: an event costs {FLOOR} answers")
    if max(costs.values()) > FLOOR:
        print("the coordinator is below the floor", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
