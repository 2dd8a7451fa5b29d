"""A consumer of a group by itself: its user, its timers and its coordinator do what they may do, in any order."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final, NoReturn

from conformance.models.composed import Did, Law, StepLaw
from conformance.models.group.words import Beat, Error, Joined, Left, Synced
from conformance.models.member.consumer import CONSUMER, Consumer
from conformance.models.member.state import Asked, Phase, State
from conformance.models.member.words import CommitOffsets, Event, Subscribe
from conformance.models.membership import EAGER, Assigned, Partitions

ME, ANOTHER = "m1", "m2"
TOPIC: Final = "t"
JOIN_ERRORS: Final = (Error.UNKNOWN_MEMBER_ID, Error.MEMBER_ID_REQUIRED, Error.COORDINATOR_NOT_AVAILABLE)
SYNC_ERRORS: Final = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS)
BEAT_ERRORS: Final = (Error.NONE, *SYNC_ERRORS)


class LoneMember:
    """The composed machine, of one part."""

    names = ("member",)

    def __init__(self, consumer: Consumer, partitions: int, generations: int) -> None:
        """``generations``: so many are told apart; after the last comes the first again."""
        self.consumer = consumer
        self.generations = generations
        numbers = range(partitions)
        self.shares: tuple[Partitions, ...] = ((), *(((TOPIC, each),) for each in numbers))
        self.shares += (tuple((TOPIC, each) for each in numbers),) * (partitions > 1)
        self.laws: tuple[Law[State] | StepLaw[State, Event, Hashable], ...] = (CLOSED, *[GIVES_UP] * self.eager)

    @property
    def eager(self) -> bool:
        return self.consumer.protocol == EAGER

    def initial(self) -> tuple[State]:
        return (self.consumer.initial(),)

    def moves(self, index: int, part: State, /) -> Iterator[Event]:
        if part.phase is Phase.CLOSED:
            return
        yield from (each for each in self.consumer.enabled(part) if not isinstance(each, CommitOffsets))
        if not part.topics:
            yield Subscribe((TOPIC,))
        yield from self.answers(part)

    def answers(self, state: State) -> Iterator[Event]:
        """Of what is under way. Somebody else leads."""
        following = max(state.identity.generation, 0) % self.generations + 1
        protocol = self.consumer.config.assignors[0].name
        if state.asked is Asked.JOIN:
            yield Joined(0, Error.NONE, following, CONSUMER, protocol, ANOTHER, ME)
            yield from (Joined(0, each, member=ME) for each in JOIN_ERRORS)
        if state.asked is Asked.SYNC:
            yield from (Synced(0, Error.NONE, CONSUMER, protocol, Assigned(share)) for share in self.shares)
            yield from (Synced(0, each) for each in SYNC_ERRORS)
        if state.beat_as is not None:
            yield from (Beat(0, each) for each in BEAT_ERRORS)
        if state.leaving:
            yield Left(0, Error.NONE)

    def act(self, index: int, part: State, move: Event, /) -> Did[State, Hashable]:
        after = self.consumer.step(part, move).state
        return Did(replace(after, incompatible=0, given=(), given_in=-1))

    def take(self, index: int, part: State, message: Hashable, /) -> NoReturn:
        raise AssertionError("nobody is there to send anything")

    def says(self, said: Event | Hashable, /) -> str:
        match said:
            case Joined() | Synced() | Beat() | Left() if said.error is not Error.NONE:
                return f"{type(said).__name__.lower()} {said.error.name}"
            case Joined(generation=generation):
                return f"joined {generation}"
            case Synced(assignment=Assigned(partitions)):
                return " ".join(("synced", *(f"{topic}:{number}" for topic, number in partitions)))
        return ""


def _gives_up(views: tuple[tuple[bool, Partitions]]) -> str | None:
    ((joining, owned),) = views
    return f"it joins, and has not given up {owned[0][0]}-{owned[0][1]}" if joining and owned else None


GIVES_UP: Law[State] = Law(
    "member/gives-up-first", ("grp-60", "429-17"), "An eager consumer owns nothing while it joins.",
    lambda index, state: (state.asked is Asked.JOIN, state.owned), _gives_up,
)  # fmt: skip


def _closed(views: tuple[tuple[bool, Partitions]]) -> str | None:
    ((closed, owned),) = views
    return f"it is closed, and has not given up {owned[0][0]}-{owned[0][1]}" if closed and owned else None


CLOSED: Law[State] = Law(
    "member/leaves-with-callbacks", ("grp-69",), "Who has left has given up all.",
    lambda index, state: (state.phase is Phase.CLOSED, state.owned), _closed,
)  # fmt: skip
