"""A Streams group whose instances upgrade their metadata one by one, as far as the choice of the leader matters.

KIP-268: a leader that receives metadata newer than its own cannot assign; its senders have to downgrade, and all
members join again. In KIP-429's draft the member with the newest version leads, which avoids this (429-18).
"""

from typing import Final, NamedTuple

from kipcheck.conformance.protocols.upgrade.ops import SteppedDown, StreamsLed

ROUNDS: Final = 5


class Instance(NamedTuple):
    name: str
    latest: int
    """The newest version that it supports."""
    used: int
    """The version that it writes."""


class Streams(NamedTuple):
    instances: tuple[Instance, ...] = ()
    """Instances, in the order in which they joined."""
    generation: int = 0
    leader: str = ""


class Probing:
    def rolled(
        self, group: Streams, name: str, version: int, by_version: bool
    ) -> tuple[Streams, list[StreamsLed | SteppedDown]]:
        """An instance restarts with a version, and the group rebalances until versions are settled."""
        others = tuple(each for each in group.instances if each.name != name)
        leader = "" if group.leader == name else group.leader
        group = Streams((*others, Instance(name, version, version)), group.generation, leader)
        events: list[StreamsLed | SteppedDown] = []
        for _ in range(ROUNDS):
            leads = self.leads(group, by_version)
            group = group._replace(generation=group.generation + 1, leader=leads.name)
            events.append(StreamsLed(group.generation, leads.name, leads.latest))
            after = self.versions_after(group, leads)
            events += [
                SteppedDown(each.name, each.used)
                for each, before in zip(after, group.instances, strict=True)
                if each.used < before.used
            ]
            if after == group.instances:
                break
            group = group._replace(instances=after)
        return group, events

    def leads(self, group: Streams, by_version: bool) -> Instance:
        """The next leader: the former one if it is a candidate, else the first; by version, only the newest are."""
        candidates = group.instances
        if by_version:
            newest = max(each.latest for each in candidates)
            candidates = tuple(each for each in candidates if each.latest == newest)
        return next((each for each in candidates if each.name == group.leader), candidates[0])

    def versions_after(self, group: Streams, leads: Instance) -> tuple[Instance, ...]:
        """Instances with their next versions: at most the leader's, and higher again as soon as all support it."""
        common = min(each.latest for each in group.instances)
        if any(each.used > leads.latest for each in group.instances):
            return tuple(each._replace(used=min(each.used, leads.latest)) for each in group.instances)
        return tuple(each._replace(used=max(each.used, common)) for each in group.instances)
