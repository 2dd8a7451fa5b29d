"""Reconstructs a Streams group from its observed events: processes, generations, subscriptions and assignments.

User data is decoded from its bytes with kipcheck's codec, in the layout of its sender. Reports of a process are used
only for its own state, never for the contents of a message.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.protocols.declare.invariant import invariant
from kipcheck.conformance.protocols.streams import ops
from kipcheck.conformance.protocols.streams.blobs import latest, read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.model import members as model_members
from kipcheck.conformance.protocols.upgrade import script_trace
from kipcheck.conformance.protocols.upgrade.ops import Ended, Restless

ObservedAt: TypeAlias = script_trace.ObservedAt[ops.ObservedEvent]
script: Final = script_trace.script_trace(ops.OPERATIONS)

FIRST_PROBED: Final = 3
"""The first metadata version with version probing: from it on a member can be asked for another version (268-48)."""
NO_REJOIN: Final = frozenset({"never", "later"})
"""Values of ``Rejoin.when`` that request no immediate rebalance."""
FUTURE_RELEASE: Final = Release((1 << 16, 0, 0))
"""The release that stands for a future one: above all others."""


def is_of_streams(case: Case, step: Step) -> bool:
    return step.verb.startswith("stream-")


streams_invariant = partial(invariant, role=Role.OPERATOR_TOOL, applies_to=is_of_streams)
"""Declares an invariant of a Streams group."""


def is_draft(release: str) -> bool:
    return release.rpartition("@")[2] in EDITIONS


@cache
def binds(requirement: str, release: str) -> bool:
    """Does a requirement apply to members of that release?"""
    found = requirements()[requirement]
    if is_draft(release):
        return found.edition != "shipped"
    return found.edition != "draft" and is_among(release, found.releases)


def is_among(release: str, spans: str) -> bool:
    """Is a release in the given ranges? A future release is above all others; a draft's binary is in none."""
    if is_draft(release):
        return False
    return (FUTURE_RELEASE if release == model_members.FUTURE else Release.parse(release)) in releases(spans)


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """A process, from its start to its end."""

    member: str
    release: str
    upgrade_from: str | None
    began: int
    """The step that started it."""

    @property
    def latest(self) -> int:
        """The latest metadata version of its release."""
        return latest(self.release)

    @property
    def is_before_probing(self) -> bool:
        return self.latest < FIRST_PROBED

    def bound(self, requirement: str) -> bool:
        return binds(requirement, self.release)

    def __str__(self) -> str:
        joining = "" if self.upgrade_from is None else f", upgrade.from={self.upgrade_from}"
        return f"{self.member} ({self.release}{joining})"


class Subscribed(NamedTuple):
    """A member of a generation, with the subscription that it joined with."""

    joining: ops.JoinMetadata
    life: Life | None
    """None if the process ended."""
    info: model_members.SubscriptionInfo
    """``UNREADABLE`` if the user data cannot be decoded."""

    @property
    def name(self) -> str:
        return str(self.life or self.joining.member)


class Given(NamedTuple):
    """An assignment that the leader sends to a member."""

    sent: ops.Sent
    at: int
    life: Life | None
    info: model_members.AssignmentInfo | None
    """None if the user data cannot be decoded."""
    why: str = ""
    """Why it cannot be decoded."""

    @property
    def name(self) -> str:
        return str(self.life or self.sent.member)


class Processed(NamedTuple):
    """A member's state after it processed an assignment."""

    event: ops.Applied
    at: int
    life: Life
    given: Given | None


class ThreadFailure(NamedTuple):
    """A thread that ended with an exception."""

    event: ops.Died
    at: int
    life: Life | None

    @property
    def is_endless(self) -> bool:
        """Did the call never return, instead of an exception?"""
        return self.event.kind == model_members.ENDLESS


UNREADABLE: Final = model_members.SubscriptionInfo(0)


@dataclass(slots=True, eq=False)
class Round:
    """A generation: the subscriptions of its members, their assignments and how they processed them."""

    formed: ops.Formed
    at: int
    members: tuple[Subscribed, ...]
    leader: Life | None
    given: list[Given] = field(default_factory=list)
    processed: list[Processed] = field(default_factory=list)
    failures: list[ThreadFailure] = field(default_factory=list)
    """The threads that ended with an exception before the next generation was formed."""

    @property
    def number(self) -> int:
        return self.formed.generation

    @property
    def where(self) -> str:
        """The generation in messages."""
        versions = ", ".join(f"{each.joining.member} uses {each.info.used}" for each in self.members)
        return f"generation {self.number} ({versions}; {self.leader or self.formed.leader} leads)"

    @property
    def lowest(self) -> int:
        """The lowest used version."""
        return min(each.info.used for each in self.members)

    @property
    def supported(self) -> int:
        """The lowest latest supported version in the subscriptions."""
        return min(each.info.latest for each in self.members)

    @property
    def futures(self) -> tuple[Subscribed, ...]:
        """Members whose used version the leader does not know."""
        known = self.leader.latest if self.leader else 0
        return tuple(each for each in self.members if each.info.used > known)

    @property
    def is_hard_mix(self) -> bool:
        """Are there members of versions that the leader does not know, and members without version probing (268-32)?

        In the draft, this is a group like any other (268-60).
        """
        drafted = self.leader is not None and is_draft(self.leader.release)
        return bool(self.futures) and self.lowest < FIRST_PROBED and not drafted

    def subscribed(self, life: Life) -> Subscribed | None:
        return next((each for each in self.members if each.life is life), None)

    def failure_while_leading(self) -> ThreadFailure | None:
        found = (each for each in self.failures if each.life is self.leader and each.event.during == "lead")
        return next(found, None)


class ProcessEvent(NamedTuple):
    """An observed event, and the process that it belongs to."""

    observation: ObservedAt
    life: Life | None

    @property
    def at(self) -> int:
        return self.observation.step


@dataclass(slots=True)
class StreamsTrace:
    deployed: ops.Deploy = field(default_factory=ops.Deploy)
    events: tuple[ops.Event | None, ...] = ()
    """The events of all steps that were answered; None for a step that had no effect."""
    observed: list[ProcessEvent] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    running: dict[str, Life] = field(default_factory=dict)

    def add(self, observation: ObservedAt) -> None:
        observed = observation.seen
        if isinstance(observed, ops.Began):
            self.running[observed.member] = Life(
                observed.member, observed.release, observed.upgrade_from, observation.step
            )
        life = self.running.get(getattr(observed, "member", ""))
        self.observed.append(ProcessEvent(observation, life))
        match observed:
            case ops.Formed():
                members = tuple(self._subscribed(each) for each in observed.members)
                self.rounds.append(Round(observed, observation.step, members, self.running.get(observed.leader)))
            case ops.Sent() if (round := self.round(observed.generation)) is not None:
                round.given.append(_given(observed, observation.step, life, round.leader))
            case ops.Applied() if (round := self.round(observed.generation)) is not None and life is not None:
                given = next((each for each in reversed(round.given) if each.life is life), None)
                round.processed.append(Processed(observed, observation.step, life, given))
            case ops.Died() if self.rounds:
                self.rounds[-1].failures.append(ThreadFailure(observed, observation.step, life))
            case Ended():
                self.running.pop(observed.member, None)

    def round(self, generation: int) -> Round | None:
        return next((each for each in reversed(self.rounds) if each.number == generation), None)

    def _subscribed(self, joining: ops.JoinMetadata) -> Subscribed:
        life = self.running.get(joining.member)
        return Subscribed(joining, life, subscription_in(joining.data, life.release if life else None))


def subscription_in(data: model_members.Blob, release: str | None) -> model_members.SubscriptionInfo:
    """The subscription in user data, decoded in the layout of its sender's release."""
    try:
        return read_subscription(data, release) if isinstance(data, bytes) else UNREADABLE
    except model_members.Fatal:
        return UNREADABLE


def _given(sent: ops.Sent, at: int, life: Life | None, leader: Life | None) -> Given:
    if not isinstance(sent.data, bytes):
        return Given(sent, at, life, None, "the assignment has no bytes")
    try:
        return Given(sent, at, life, read_assignment(sent.data, leader.release if leader else None))
    except model_members.Fatal as fatal:
        return Given(sent, at, life, None, fatal.why)


def observations(history: History) -> tuple[ObservedAt, ...]:
    return script(history).observed


@cached_on_history
def streams_trace(history: History) -> StreamsTrace:
    """The group as observed in all answered steps."""
    events, observed = script(history)
    found = StreamsTrace(events=events)
    refused = {each.step for each in observed if isinstance(each.seen, ops.Refused)}
    for index, event in enumerate(events):
        if isinstance(event, ops.Deploy):
            found.deployed = event
        elif isinstance(event, ops.Start) and index not in refused:
            break  # The deployment does not change after the first start.
    for each in observed:
        found.add(each)
    return found


def led(history: History) -> Iterator[tuple[Round, Life]]:
    """Generations whose leader was running when they were formed, and whose subscriptions can all be decoded."""
    for each in streams_trace(history).rounds:
        if each.leader is not None and each.members and all(one.info is not UNREADABLE for one in each.members):
            yield each, each.leader


def processed(history: History) -> Iterator[tuple[Round, Processed, model_members.AssignmentInfo]]:
    """Assignments that their members processed, that can be decoded and that carry no error."""
    for round in streams_trace(history).rounds:
        for each in round.processed:
            if each.given is not None and each.given.info is not None and not each.given.info.error:
                yield round, each, each.given.info


class Stretch(NamedTuple):
    """Steps up to one after which the group is at rest, or the wait for that was given up."""

    first: int
    """Its first step."""
    last: int
    rounds: tuple[Round, ...]
    """The generations formed in it."""
    running: tuple[Life, ...]
    """The processes that run at its end, except those that ended with an exception."""
    rests: ops.Rests | None


def stretches(history: History) -> Iterator[Stretch]:
    found = streams_trace(history)
    running: dict[str, Life] = {}
    first = 0
    for each in found.observed:
        match each.observation.seen:
            case ops.Began(member) if each.life is not None:
                running[member] = each.life
            case Ended(member) | ops.Died(member):
                running.pop(member, None)
            case ops.Rests() | Restless():
                rests = each.observation.seen if isinstance(each.observation.seen, ops.Rests) else None
                inside = tuple(one for one in found.rounds if first <= one.at <= each.at)
                yield Stretch(first, each.at, inside, tuple(running.values()), rests)
                first = each.at + 1
