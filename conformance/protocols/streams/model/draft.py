"""KIP-268 as written, before any of it was released, as a separate machine.

``kip-268`` is release 1.2 of the draft, with metadata version 3; ``FUTURE`` a simulated later one with version 4.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, final

from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import EAGER
from kipcheck.conformance.protocols.streams.model import leader, members as model_members
from kipcheck.conformance.protocols.streams.model.member import AGAIN, applied, decoded
from kipcheck.conformance.protocols.streams.model.rules import CONFIG, FIRST_PROBED, ILLEGAL_ARGUMENT, LINES
from kipcheck.conformance.protocols.streams.model.tasks import place, work

VERSIONS: Final[Mapping[str, int]] = {
    KIP_268.name: 3,
    model_members.FUTURE: 4,
    f"{model_members.FUTURE}@{KIP_268.name}": 4,
}
"""Release of the draft -> its latest metadata version."""
UPGRADES: Final = LINES[: LINES.index("1.1") + 1]
"""Values of ``upgrade.from`` (268-08)."""


@final
class Draft:
    """A member of the draft. Errors: LookupError if ``settings.release`` is not the draft's; older releases are
    ``Released``."""

    supports = (EAGER,)

    def __init__(self, settings: model_members.Settings) -> None:
        self.settings = settings
        self.latest = VERSIONS[settings.release]

    def initial(self) -> model_members.Memory:
        upgrade_from = self.settings.upgrade_from
        if upgrade_from is None:
            return model_members.Memory(self.latest)
        if upgrade_from not in UPGRADES:
            raise model_members.Misconfigured(
                f"invalid upgrade.from {upgrade_from!r}: use one of {', '.join(UPGRADES)}", CONFIG
            )
        return model_members.Memory(1 if upgrade_from == UPGRADES[0] else 2)

    def subscribe(
        self, memory: model_members.Memory, topics: tuple[str, ...], /
    ) -> tuple[model_members.Memory, model_members.Blob]:
        used = memory.used
        if not 1 <= used <= self.latest:
            raise model_members.Fatal(ILLEGAL_ARGUMENT, f"version must be from 1 to {self.latest}, got {used}")
        return replace(memory, closes=False), model_members.SubscriptionInfo(
            used,
            self.latest if used >= FIRST_PROBED else model_members.NO_VERSION,
            self.settings.process,
            memory.active,
            tuple(task for task in memory.standby if task not in memory.active),
            self.settings.end_point if used > 1 else None,
        )

    def lead(
        self, memory: model_members.Memory, topics: tuple[Topic, ...], members: tuple[model_members.Joining, ...], /
    ) -> tuple[model_members.Memory, Mapping[str, model_members.Share]]:
        """Members with a version that the leader does not know get only the leader's version; all tasks are assigned to
        the others, in the lowest version that one of them uses (268-11, 268-15, 268-16, 268-20)."""
        group = leader.receive(members, self.latest)
        todo = work(self.settings.topology, topics)
        if todo.missing:
            raise model_members.Fatal(leader.STREAMS, f"missing source topics: {', '.join(todo.missing)}")
        if todo.uneven:
            raise model_members.Fatal(leader.TOPOLOGY, f"not co-partitioned: {', '.join(todo.uneven)}")
        clients = leader.instances(group, todo, owns=False, strangers=False)
        placement = place(todo, clients, self.settings.topology.standbys)
        info = model_members.AssignmentInfo(
            group.used, self.latest, hosts=leader.hosts_of(group, clients, placement, todo)[0]
        )
        empty = model_members.Share((), leader.written(model_members.AssignmentInfo(self.latest, self.latest)))
        shares = dict.fromkeys(group.strangers, empty) | leader.regular(placement, todo, info)
        return replace(memory, closes=leader.is_last_bounce(group, self.latest)), shares

    def assigned(self, memory: model_members.Memory, share: model_members.Share, /) -> model_members.AssignmentResult:
        """A lower supported version makes the member downgrade and rejoin; it uses a higher one from the next rebalance
        on, which only the leader triggers, if no other is expected (268-17, 268-19, 268-21)."""
        info = decoded(share, self.latest)
        if info.used > memory.used:
            raise model_members.Fatal(
                leader.ILLEGAL_STATE, f"assignment has version {info.used}, above the subscription's {memory.used}"
            )
        used = memory.used if info.used < FIRST_PROBED else min(info.supported, self.latest)
        rejoins = used < memory.used or memory.closes
        after = applied(replace(memory, used=used, closes=False), share, info)
        return model_members.AssignmentResult(after, AGAIN if rejoins else model_members.NEVER)
