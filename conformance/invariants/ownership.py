"""Invariants of partition ownership in a group whose members join, leave and fail: single owners, no unread partition.

``contested``, ``unread`` and ``unasked`` are shared by the laws that an exploration checks in every state and by the
invariants here, which read the observed events of a group and name owners and steps.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kipcheck.conformance.apis.upgrade_script import Moment, moments
from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.assignment import Partition, listed
from kipcheck.conformance.models.membership import V0
from kipcheck.conformance.models.observed_events import Assigned, Ended, Formed, Gave, PutOut, Rests, Took
from kipcheck.conformance.models.operations import TOPICS

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
    asked = {topic for topics in subscribed for topic in topics}
    held = {each for partitions in owned for each in partitions}
    return [
        (topic, number)
        for topic, size in TOPICS
        if topic in asked
        for number in range(size)
        if (topic, number) not in held
    ]


def unasked(topics: Collection[str], partitions: Iterable[Partition]) -> list[Partition]:
    """Partitions that a member owns and does not subscribe to."""
    return [each for each in partitions if each[0] not in topics]


def is_mixed(versions: Collection[int]) -> bool:
    """Does the group have members of version 0, which gave up everything, and of later versions?"""
    return V0 in versions and any(each > V0 for each in versions)


# Observed events


@dataclass(frozen=True, slots=True)
class Holding:
    """The ownership of a partition since an assigned callback."""

    member: str
    generation: int
    since: int
    """The step."""

    def __str__(self) -> str:
        return f"{self.member} owns it since step {self.since + 1}, generation {self.generation}"


@dataclass(slots=True)
class Books:
    """The owners of all partitions, updated with each observed event."""

    held: dict[str, dict[Partition, Holding]] = field(default_factory=dict)
    generation: Formed | None = None
    """The last generation that was formed."""
    formed_at: int = 0
    fenced: dict[str, dict[Partition, Holding]] = field(default_factory=dict)
    """Partitions of members that the group removed and that have not given them up."""

    def tell(self, moment: Moment) -> None:
        match moment.seen:
            case Took(member, generation, partitions):
                mine = self.held.setdefault(member, {})
                mine.update((each, Holding(member, generation, moment.step)) for each in partitions)
            case Gave(member, partitions):
                for books in (self.held, self.fenced):
                    for each in partitions:
                        books.get(member, {}).pop(each, None)
            case Ended(member):
                self.held.pop(member, None)
                self.fenced.pop(member, None)
            case PutOut(member):
                self.fenced.setdefault(member, {}).update(self.held.pop(member, {}))
            case Formed():
                self.generation, self.formed_at = moment.seen, moment.step

    def of(self, member: str) -> Collection[Partition]:
        return self.held.get(member, {})


def is_unaware(formed: Formed) -> bool:
    """Does some member use a version that the leader does not know? KIP-429 leaves the result undefined (429-06)."""
    leads = next((each for each in formed.members if each.member == formed.leader), None)
    return leads is not None and any(each.version > leads.knows for each in formed.members)


def told(history: History, undefined: bool = False) -> Iterator[tuple[Moment, Books]]:
    """Each observed event with the owners before it; ``undefined``: also after an unaware leader has led."""
    books = Books()
    for moment in moments(history):
        if isinstance(moment.seen, Formed) and is_unaware(moment.seen) and not undefined:
            return
        yield moment, books
        books.tell(moment)


@dataclass(frozen=True, slots=True)
class Clash:
    """A member adds a partition that another one has not given up."""

    partition: Partition
    first: Holding
    second: Holding

    @property
    def same_generation(self) -> bool:
        return self.first.generation == self.second.generation

    def violation(self, *shape: str) -> Violation:
        what = listed([self.partition])
        why = (
            f"{what}: {self.first} and has not given it up; {self.second.member} adds it in step "
            f"{self.second.since + 1}, generation {self.second.generation}, and both read it"
        )
        at = (self.first.since, self.second.since)
        return Violation(why, at, f"{what} read by one member", f"by {self.first.member} and {self.second.member}",
                         shape=("two owners", *shape))  # fmt: skip


def clashes(history: History, undefined: bool = False) -> Iterator[tuple[Clash, Books]]:
    for moment, books in told(history, undefined):
        if isinstance(moment.seen, Took):
            taker, generation, partitions = moment.seen.member, moment.seen.generation, moment.seen.partitions
            before = [(member, tuple(held)) for member, held in books.held.items() if member != taker]
            for partition, first, _ in contested([*before, (taker, partitions)]):
                taken = Holding(taker, generation, moment.step)
                yield Clash(partition, books.held[first][partition], taken), books


def every_step(case: Case, step: Step) -> bool:
    """All steps except those about Streams, which are another group's."""
    return step.verb != "roll-streams" and not step.verb.startswith("stream-")


@invariant("bounce/one-owner", "429-05", "429-16", "429-13", role=Role.OPERATOR_TOOL, concerns=every_step)
def one_owner(history: History) -> Iterator[Violation]:
    """No partition is assigned to two members in one generation."""
    for clash, _ in clashes(history):
        if clash.same_generation:
            yield clash.violation("one generation")


@invariant("bounce/revoked-first", "429-05", "429-15", "429-16", role=Role.OPERATOR_TOOL, concerns=every_step)
def revoked_first(history: History) -> Iterator[Violation]:
    """No member adds a partition that a member of an earlier generation has not given up yet."""
    for clash, _ in clashes(history):
        if not clash.same_generation:
            yield clash.violation("across generations")


@invariant("bounce/skipped-path", "429-06", role=Role.OPERATOR_TOOL, grade=Grade.INFO, concerns=every_step)
def skipped_path(history: History) -> Iterator[Violation]:
    """A leader that does not know the newest version assigns partitions away from members that still read them."""
    for clash, books in clashes(history, undefined=True):
        formed = books.generation
        if formed is not None and is_unaware(formed):
            found = clash.violation("unaware leader")
            why = (
                f"{formed.leader}, which leads generation {formed.generation}, does not know every member's version. "
                f"{found.why}"
            )
            yield Violation(why, (books.formed_at, *found.at), found.expected, found.observed, shape=found.shape)


@invariant("bounce/all-owned", "grp-03", "429-04", role=Role.OPERATOR_TOOL, concerns=every_step)
def all_owned(history: History) -> Iterator[Violation]:
    """When a group that is not mixed is at rest, all subscribed partitions are read."""
    for moment, books in told(history):
        if not isinstance(moment.seen, Rests) or is_mixed([each.version for each in moment.seen.members]):
            continue
        members = moment.seen.members
        missing = unread([each.topics for each in members], [books.of(each.member) for each in members])
        if missing:
            who = ", ".join(each.member for each in members)
            rests = f"the group of {who} is at rest in generation {moment.seen.generation}"
            at = (books.formed_at, moment.step)
            yield Violation(f"{rests}, and no member reads {listed(missing)}", at, "all partitions read",
                            f"not {listed(missing)}", shape=("unread",))  # fmt: skip


@invariant("bounce/subscribed", "grp-03", role=Role.OPERATOR_TOOL, concerns=every_step)
def subscribed(history: History) -> Iterator[Violation]:
    """No member adds partitions of a topic that it does not subscribe to."""
    for moment, books in told(history):
        if isinstance(moment.seen, Took) and books.generation is not None:
            topics: Mapping[str, tuple[str, ...]] = {each.member: each.topics for each in books.generation.members}
            member = moment.seen.member
            foreign = unasked(topics.get(member, ()), moment.seen.partitions) if member in topics else []
            if foreign:
                asked = ", ".join(topics[member])
                why = f"{member} subscribes to {asked}, and adds {listed(foreign)} in step {moment.step + 1}"
                yield Violation(why, (books.formed_at, moment.step), f"only partitions of {asked}", listed(foreign),
                                shape=("not subscribed",))  # fmt: skip


@invariant("bounce/lost-is-neither", "429-05", role=Role.OPERATOR_TOOL,
           concerns=lambda case, step: step.verb == "lose")  # fmt: skip
def lost_is_neither(history: History) -> Iterator[Violation]:
    """A lost response counts neither as done nor as failed: no member adds or gives up partitions because of it."""
    for moment, _ in told(history):
        if history.ops[moment.step].step.verb != "lose":
            continue
        match moment.seen:
            case Took(member) | Assigned(member):
                how = "takes it for done"
            case Gave(member) | PutOut(member):
                how = "takes it for failed"
            case _:
                continue
        why = f"the connection of {history.ops[moment.step].step['member']} breaks, and {member} {how}"
        yield Violation(why, (moment.step,), "no change", how, shape=("lost", how))
