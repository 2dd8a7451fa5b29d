"""Who reads which partition, in a group whose members come, go and fail: nobody twice, and in the end everything once.

The sums are done once (``contested``, ``unread``, ``unasked``); they serve the laws that an exploration holds every
state to, and the searches that go through what was seen of a group and say who had what since when.
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

# The sums


def contested(owned: Iterable[tuple[str, Collection[Partition]]]) -> Iterator[tuple[Partition, str, str]]:
    """What two members have at once: the partition, who is named first, who is named later."""
    first: dict[Partition, str] = {}
    for member, partitions in owned:
        for each in partitions:
            if each in first:
                yield each, first[each], member
            else:
                first[each] = member


def unread(subscribed: Iterable[Iterable[str]], owned: Iterable[Collection[Partition]]) -> list[Partition]:
    """What somebody subscribes to and nobody has."""
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
    """What a member has and does not subscribe to."""
    return [each for each in partitions if each[0] not in topics]


def is_mixed(versions: Collection[int]) -> bool:
    """Have some given up everything, and some not?"""
    return V0 in versions and any(each > V0 for each in versions)


# What was seen


@dataclass(frozen=True, slots=True)
class Holding:
    """A partition, since the end of an assigned callback."""

    member: str
    generation: int
    since: int
    """The step."""

    def __str__(self) -> str:
        return f"{self.member} has had it since step {self.since + 1}, generation {self.generation}"


@dataclass(slots=True)
class Books:
    """Who has what, as it goes on."""

    held: dict[str, dict[Partition, Holding]] = field(default_factory=dict)
    generation: Formed | None = None
    """The last that was formed."""
    formed_at: int = 0
    fenced: dict[str, dict[Partition, Holding]] = field(default_factory=dict)
    """What members that were put out believe they have."""

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
    """Does the leader not understand what some member speaks? What comes of that is left undefined (429-06)."""
    leads = next((each for each in formed.members if each.member == formed.leader), None)
    return leads is not None and any(each.version > leads.knows for each in formed.members)


def told(history: History, undefined: bool = False) -> Iterator[tuple[Moment, Books]]:
    """Each happening, and the books before it; ``undefined``: also after an unaware leader has led."""
    books = Books()
    for moment in moments(history):
        if isinstance(moment.seen, Formed) and is_unaware(moment.seen) and not undefined:
            return
        yield moment, books
        books.tell(moment)


@dataclass(frozen=True, slots=True)
class Clash:
    """Somebody takes up what somebody else has not given up."""

    partition: Partition
    first: Holding
    second: Holding

    @property
    def same_generation(self) -> bool:
        return self.first.generation == self.second.generation

    def violation(self, *shape: str) -> Violation:
        what = listed([self.partition])
        why = (
            f"{what}: {self.first} and has not given it up; {self.second.member} takes it up in step "
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
    """All but what is about Streams, which is another group."""
    return step.verb != "roll-streams" and not step.verb.startswith("stream-")


@invariant("bounce/one-owner", "429-05", "429-16", "429-13", role=Role.OPERATOR_TOOL, concerns=every_step)
def one_owner(history: History) -> Iterator[Violation]:
    """No partition is given to two members in one generation."""
    for clash, _ in clashes(history):
        if clash.same_generation:
            yield clash.violation("one generation")


@invariant("bounce/revoked-first", "429-05", "429-15", "429-16", role=Role.OPERATOR_TOOL, concerns=every_step)
def revoked_first(history: History) -> Iterator[Violation]:
    """Nobody takes up a partition that a member of an earlier generation has not given up yet."""
    for clash, _ in clashes(history):
        if not clash.same_generation:
            yield clash.violation("across generations")


@invariant("bounce/skipped-path", "429-06", role=Role.OPERATOR_TOOL, grade=Grade.INFO, concerns=every_step)
def skipped_path(history: History) -> Iterator[Violation]:
    """A leader that does not understand the newest members gives away what they still read."""
    for clash, books in clashes(history, undefined=True):
        formed = books.generation
        if formed is not None and is_unaware(formed):
            found = clash.violation("unaware leader")
            why = f"{formed.leader}, which leads generation {formed.generation}, does not understand all. {found.why}"
            yield Violation(why, (books.formed_at, *found.at), found.expected, found.observed, shape=found.shape)


@invariant("bounce/all-owned", "grp-03", "429-04", role=Role.OPERATOR_TOOL, concerns=every_step)
def all_owned(history: History) -> Iterator[Violation]:
    """When a group that is not mixed rests, all that its members subscribe to is read."""
    for moment, books in told(history):
        if not isinstance(moment.seen, Rests) or is_mixed([each.version for each in moment.seen.members]):
            continue
        members = moment.seen.members
        missing = unread([each.topics for each in members], [books.of(each.member) for each in members])
        if missing:
            who = ", ".join(each.member for each in members)
            why = f"the group of {who} rests in generation {moment.seen.generation}, and nobody reads {listed(missing)}"
            at = (books.formed_at, moment.step)
            yield Violation(why, at, "all is read", f"not {listed(missing)}", shape=("unread",))


@invariant("bounce/subscribed", "grp-03", role=Role.OPERATOR_TOOL, concerns=every_step)
def subscribed(history: History) -> Iterator[Violation]:
    """Nobody takes up a topic that it does not subscribe to."""
    for moment, books in told(history):
        if isinstance(moment.seen, Took) and books.generation is not None:
            topics: Mapping[str, tuple[str, ...]] = {each.member: each.topics for each in books.generation.members}
            member = moment.seen.member
            foreign = unasked(topics.get(member, ()), moment.seen.partitions) if member in topics else []
            if foreign:
                asked = ", ".join(topics[member])
                why = f"{member} subscribes to {asked}, and takes up {listed(foreign)} in step {moment.step + 1}"
                yield Violation(why, (books.formed_at, moment.step), f"of {asked} alone", listed(foreign),
                                shape=("not subscribed",))  # fmt: skip


@invariant("bounce/lost-is-neither", "429-05", role=Role.OPERATOR_TOOL,
           concerns=lambda case, step: step.verb == "lose")  # fmt: skip
def lost_is_neither(history: History) -> Iterator[Violation]:
    """An answer that is lost is taken neither for done nor for failed: who has what stays as it is."""
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
        yield Violation(why, (moment.step,), "nothing is known", how, shape=("lost", how))
