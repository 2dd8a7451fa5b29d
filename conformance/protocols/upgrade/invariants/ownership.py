"""Invariants of partition ownership in a group whose members join, leave and fail: one owner, none unread."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names
from kipcheck.conformance.protocols.assignment.model.membership import V0
from kipcheck.conformance.protocols.cluster.kinds import TOPICS
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.upgrade import ops, script_trace
from kipcheck.conformance.protocols.upgrade.invariants import OWNERS, SERVED, upgrade_invariant

PLACE = 10

ObservedAt: TypeAlias = script_trace.ObservedAt[ops.ObservedEvent]
trace: Final = script_trace.script_trace(ops.OPERATIONS)

# Shared computations


def contested(owned: Iterable[tuple[str, Collection[Partition]]]) -> Iterator[tuple[Partition, str, str]]:
    """Partitions that two members own at once: the partition, the first member, the later member."""
    first: dict[Partition, str] = {}
    for member, partitions in owned:
        for each in partitions:
            if each in first:
                yield each, first[each], member
            else:
                first[each] = member


def unread(subscribed: Iterable[Iterable[str]], owned: Iterable[Collection[Partition]]) -> list[Partition]:
    """Partitions of subscribed topics without an owner."""
    wanted = {topic for topics in subscribed for topic in topics}
    current = {each for partitions in owned for each in partitions}
    return [
        (topic, number)
        for topic, size in TOPICS
        if topic in wanted
        for number in range(size)
        if (topic, number) not in current
    ]


def unsubscribed(topics: Collection[str], partitions: Iterable[Partition]) -> list[Partition]:
    """Partitions that a member owns and does not subscribe to."""
    return [each for each in partitions if each[0] not in topics]


def is_mixed(versions: Collection[int]) -> bool:
    """Does the group have members of version 0, which gave up everything, and of later versions?"""
    return V0 in versions and any(each > V0 for each in versions)


# Observed events


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership of a partition since an assigned callback."""

    member: str
    generation: int
    since: int
    """The step."""

    def __str__(self) -> str:
        return f"{self.member} owns it since step {self.since + 1}, generation {self.generation}"


@dataclass(slots=True)
class Owners:
    """The owners of all partitions, updated with each observed event."""

    owned: dict[str, dict[Partition, Ownership]] = field(default_factory=dict)
    generation: ops.Formed | None = None
    """The last generation that was formed."""
    formed_at: int = 0
    fenced: dict[str, dict[Partition, Ownership]] = field(default_factory=dict)
    """Partitions of members that the group removed and that have not given them up."""

    def update(self, observation: ObservedAt) -> None:
        match observation.seen:
            case ops.Took(member, generation, partitions):
                mine = self.owned.setdefault(member, {})
                mine.update((each, Ownership(member, generation, observation.step)) for each in partitions)
            case ops.Gave(member, partitions):
                for owners in (self.owned, self.fenced):
                    for each in partitions:
                        owners.get(member, {}).pop(each, None)
            case ops.Ended(member):
                self.owned.pop(member, None)
                self.fenced.pop(member, None)
            case ops.PutOut(member):
                self.fenced.setdefault(member, {}).update(self.owned.pop(member, {}))
            case ops.Formed():
                self.generation, self.formed_at = observation.seen, observation.step

    def of(self, member: str) -> Collection[Partition]:
        return self.owned.get(member, {})


def is_unaware(formed: ops.Formed) -> bool:
    """Does some member use a version that the leader does not know? KIP-429 leaves the result undefined (429-06)."""
    leads = next((each for each in formed.members if each.member == formed.leader), None)
    return leads is not None and any(each.version > leads.knows for each in formed.members)


def observations(history: History) -> tuple[ObservedAt, ...]:
    return trace(history).observed


def observed_events(history: History, undefined: bool = False) -> Iterator[tuple[ObservedAt, Owners]]:
    """Each observed event with the owners before it; ``undefined``: also after an unaware leader has led."""
    owners = Owners()
    for observation in observations(history):
        if isinstance(observation.seen, ops.Formed) and is_unaware(observation.seen) and not undefined:
            return
        yield observation, owners
        owners.update(observation)


@dataclass(frozen=True, slots=True)
class DoubleOwner:
    """A member adds a partition that another one has not given up."""

    partition: Partition
    first: Ownership
    second: Ownership

    @property
    def same_generation(self) -> bool:
        return self.first.generation == self.second.generation

    def violation(self, *shape: str) -> Violation:
        what = partition_names([self.partition])
        why = (
            f"{what}: {self.first} and has not given it up; {self.second.member} adds it in step "
            f"{self.second.since + 1}, generation {self.second.generation}, and both read it"
        )
        at = (self.first.since, self.second.since)
        return Violation(why, at, f"{what} read by one member", f"by {self.first.member} and {self.second.member}",
                         shape=("two owners", *shape))  # fmt: skip


def double_owners(history: History, undefined: bool = False) -> Iterator[tuple[DoubleOwner, Owners]]:
    for observation, owners in observed_events(history, undefined):
        if isinstance(observation.seen, ops.Took):
            taker, generation, partitions = (
                observation.seen.member,
                observation.seen.generation,
                observation.seen.partitions,
            )
            before = [(member, tuple(current)) for member, current in owners.owned.items() if member != taker]
            for partition, first, _ in contested([*before, (taker, partitions)]):
                taken = Ownership(taker, generation, observation.step)
                yield DoubleOwner(partition, owners.owned[first][partition], taken), owners


@impact(
    "A partition has two owners during an upgrade",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-12984"),
)
@upgrade_invariant("bounce/one-owner", "429-05", "429-16", "429-13", checks=("bounce/ownership", OWNERS))
def one_owner(history: History) -> Iterator[Violation]:
    """No partition is assigned to two members in one generation."""
    for clash, _ in double_owners(history):
        if clash.same_generation:
            yield clash.violation("one generation")


@impact(
    "A partition is read by two members during an upgrade",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-14639"),
)
@upgrade_invariant("bounce/revoked-first", "429-05", "429-15", "429-16", checks=("bounce/ownership", OWNERS))
def revoked_first(history: History) -> Iterator[Violation]:
    """No member adds a partition that a member of an earlier generation has not given up yet."""
    for clash, _ in double_owners(history):
        if not clash.same_generation:
            yield clash.violation("across generations")


@impact(
    "An old leader takes partitions from members that still read them",
    "double processing",
    "guards",
    "double-processing",
    links=("KIP-429",),
)
@upgrade_invariant("bounce/skipped-path", "429-06", checks=("bounce/leaders",), grade=Grade.INFO)
def skipped_path(history: History) -> Iterator[Violation]:
    """A leader that does not know the newest version assigns partitions away from members that still read them."""
    for clash, owners in double_owners(history, undefined=True):
        formed = owners.generation
        if formed is not None and is_unaware(formed):
            found = clash.violation("unaware leader")
            why = (
                f"{formed.leader}, which leads generation {formed.generation}, does not know every member's version. "
                f"{found.why}"
            )
            yield Violation(why, (owners.formed_at, *found.at), found.expected, found.observed, shape=found.shape)


@impact("Partitions stay unread after an upgrade", "stuck group", "ownership", "unread-partition", links=("KIP-429",))
@upgrade_invariant(
    "bounce/all-owned", "grp-03", "429-04", "429-26", checks=("bounce/ownership", "bounce/mixed", SERVED)
)
def all_owned(history: History) -> Iterator[Violation]:
    """When a group that is not mixed is at rest, all subscribed partitions are read."""
    for observation, owners in observed_events(history):
        if not isinstance(observation.seen, ops.Rests) or is_mixed([each.version for each in observation.seen.members]):
            continue
        members = observation.seen.members
        missing = unread([each.topics for each in members], [owners.of(each.member) for each in members])
        if missing:
            names = ", ".join(each.member for each in members)
            rests = f"the group of {names} is at rest in generation {observation.seen.generation}"
            at = (owners.formed_at, observation.step)
            yield Violation(f"{rests}, and no member reads {partition_names(missing)}", at, "all partitions read",
                            f"not {partition_names(missing)}", shape=("unread",))  # fmt: skip


@impact(
    "A member reads topics that it does not subscribe to",
    "double processing",
    "ownership",
    "double-processing",
    links=("KAFKA-7961",),
)
@upgrade_invariant("bounce/subscribed", "grp-03", checks=("bounce/ownership",))
def subscribed(history: History) -> Iterator[Violation]:
    """No member adds partitions of a topic that it does not subscribe to."""
    for observation, owners in observed_events(history):
        if isinstance(observation.seen, ops.Took) and owners.generation is not None:
            topics: Mapping[str, tuple[str, ...]] = {each.member: each.topics for each in owners.generation.members}
            member = observation.seen.member
            foreign = unsubscribed(topics.get(member, ()), observation.seen.partitions) if member in topics else []
            if foreign:
                wanted = ", ".join(topics[member])
                why = (
                    f"{member} subscribes to {wanted}, and adds {partition_names(foreign)} in step "
                    f"{observation.step + 1}"
                )
                yield Violation(
                    why,
                    (owners.formed_at, observation.step),
                    f"only partitions of {wanted}",
                    partition_names(foreign),
                    shape=("not subscribed",),
                )


@impact("A lost response makes a member read or give up partitions", "double processing", "callbacks", "needless-move")
@upgrade_invariant("bounce/lost-is-neither", "429-05", checks=("bounce/ownership",),
           applies_to=lambda case, step: step.verb == "lose")  # fmt: skip
def lost_is_neither(history: History) -> Iterator[Violation]:
    """A lost response counts neither as done nor as failed: no member adds or gives up partitions because of it."""
    for observation, _ in observed_events(history):
        if history.case.steps[observation.step].verb != "lose":
            continue
        match observation.seen:
            case ops.Took(member) | ops.Assigned(member):
                how = "takes it for done"
            case ops.Gave(member) | ops.PutOut(member):
                how = "takes it for failed"
            case _:
                continue
        why = f"the connection of {history.case.steps[observation.step]['member']} breaks, and {member} {how}"
        yield Violation(why, (observation.step,), "no change", how, shape=("lost", how))
