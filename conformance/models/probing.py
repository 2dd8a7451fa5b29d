"""A Streams group whose instances are brought to newer metadata one by one, as far as the choice of the leader goes.

KIP-268: a leader that meets metadata newer than its own cannot assign; those who sent it are told to step down, and all
join once more. In KIP-429's draft the newest leads, so that this never comes (429-18).
"""

from typing import Final, NamedTuple

from kipcheck.conformance.models.observed_events import SteppedDown, StreamsLed

ROUNDS: Final = 5


class Instance(NamedTuple):
    name: str
    latest: int
    """The newest version that it knows."""
    used: int
    """In which it writes."""


class Streams(NamedTuple):
    instances: tuple[Instance, ...] = ()
    """In the order in which they joined."""
    generation: int = 0
    leader: str = ""


class Probing:
    def rolled(
        self, group: Streams, name: str, version: int, by_version: bool
    ) -> tuple[Streams, list[StreamsLed | SteppedDown]]:
        """An instance starts again, and the group comes to an assignment."""
        others = tuple(each for each in group.instances if each.name != name)
        leader = "" if group.leader == name else group.leader
        group = Streams((*others, Instance(name, version, version)), group.generation, leader)
        seen: list[StreamsLed | SteppedDown] = []
        for _ in range(ROUNDS):
            leads = self.leads(group, by_version)
            group = group._replace(generation=group.generation + 1, leader=leads.name)
            seen.append(StreamsLed(group.generation, leads.name, leads.latest))
            after = self.told(group, leads)
            seen += [
                SteppedDown(each.name, each.used)
                for each, before in zip(after, group.instances, strict=True)
                if each.used < before.used
            ]
            if after == group.instances:
                break
            group = group._replace(instances=after)
        return group, seen

    def leads(self, group: Streams, by_version: bool) -> Instance:
        """The newest, or the one that did; else the first."""
        candidates = group.instances
        if by_version:
            newest = max(each.latest for each in candidates)
            candidates = tuple(each for each in candidates if each.latest == newest)
        return next((each for each in candidates if each.name == group.leader), candidates[0])

    def told(self, group: Streams, leads: Instance) -> tuple[Instance, ...]:
        """In which version each shall write: none above the leader's; and up again as soon as all know it."""
        common = min(each.latest for each in group.instances)
        if any(each.used > leads.latest for each in group.instances):
            return tuple(each._replace(used=min(each.used, leads.latest)) for each in group.instances)
        return tuple(each._replace(used=max(each.used, common)) for each in group.instances)
