"""KIP-268 as written, before any of it was released, as a separate machine.

``kip-268`` is release 1.2 of the draft, with metadata version 3; ``FUTURE`` a simulated later one with version 4.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, final

from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import EAGER
from kipcheck.conformance.protocols.streams.model.leader import (
    ILLEGAL_STATE,
    STREAMS,
    TOPOLOGY,
    hosts_of,
    instances,
    is_last_bounce,
    receive,
    regular,
    written,
)
from kipcheck.conformance.protocols.streams.model.member import AGAIN, applied, decoded
from kipcheck.conformance.protocols.streams.model.members import (
    FUTURE,
    NEVER,
    NO_VERSION,
    AssignmentInfo,
    AssignmentResult,
    Blob,
    Fatal,
    Joining,
    Memory,
    Misconfigured,
    Settings,
    Share,
    SubscriptionInfo,
)
from kipcheck.conformance.protocols.streams.model.rules import CONFIG, FIRST_PROBED, ILLEGAL_ARGUMENT, LINES
from kipcheck.conformance.protocols.streams.model.tasks import place, work

VERSIONS: Final[Mapping[str, int]] = {KIP_268.name: 3, FUTURE: 4, f"{FUTURE}@{KIP_268.name}": 4}
"""Release of the draft -> its latest metadata version."""
UPGRADES: Final = LINES[: LINES.index("1.1") + 1]
"""Values of ``upgrade.from`` (268-08)."""


@final
class Draft:
    """A member of the draft. Errors: LookupError if ``settings.release`` is not the draft's; older releases are
    ``Released``."""

    supports = (EAGER,)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.latest = VERSIONS[settings.release]

    def initial(self) -> Memory:
        upgrade_from = self.settings.upgrade_from
        if upgrade_from is None:
            return Memory(self.latest)
        if upgrade_from not in UPGRADES:
            raise Misconfigured(f"invalid upgrade.from {upgrade_from!r}: use one of {', '.join(UPGRADES)}", CONFIG)
        return Memory(1 if upgrade_from == UPGRADES[0] else 2)

    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, Blob]:
        used = memory.used
        if not 1 <= used <= self.latest:
            raise Fatal(ILLEGAL_ARGUMENT, f"version must be from 1 to {self.latest}, got {used}")
        return replace(memory, closes=False), SubscriptionInfo(
            used,
            self.latest if used >= FIRST_PROBED else NO_VERSION,
            self.settings.process,
            memory.active,
            tuple(task for task in memory.standby if task not in memory.active),
            self.settings.end_point if used > 1 else None,
        )

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        """Members with a version that the leader does not know get only the leader's version; all tasks are assigned to
        the others, in the lowest version that one of them uses (268-11, 268-15, 268-16, 268-20)."""
        group = receive(members, self.latest)
        todo = work(self.settings.topology, topics)
        if todo.missing:
            raise Fatal(STREAMS, f"missing source topics: {', '.join(todo.missing)}")
        if todo.uneven:
            raise Fatal(TOPOLOGY, f"not co-partitioned: {', '.join(todo.uneven)}")
        clients = instances(group, todo, owns=False, strangers=False)
        placement = place(todo, clients, self.settings.topology.standbys)
        info = AssignmentInfo(group.used, self.latest, hosts=hosts_of(group, clients, placement, todo)[0])
        empty = Share((), written(AssignmentInfo(self.latest, self.latest)))
        shares = dict.fromkeys(group.strangers, empty) | regular(placement, todo, info)
        return replace(memory, closes=is_last_bounce(group, self.latest)), shares

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        """A lower supported version makes the member downgrade and rejoin; it uses a higher one from the next rebalance
        on, which only the leader triggers, if no other is expected (268-17, 268-19, 268-21)."""
        info = decoded(share, self.latest)
        if info.used > memory.used:
            raise Fatal(ILLEGAL_STATE, f"assignment has version {info.used}, above the subscription's {memory.used}")
        used = memory.used if info.used < FIRST_PROBED else min(info.supported, self.latest)
        rejoins = used < memory.used or memory.closes
        after = applied(replace(memory, used=used, closes=False), share, info)
        return AssignmentResult(after, AGAIN if rejoins else NEVER)
