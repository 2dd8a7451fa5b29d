"""Declares the model ``member``: a consumer of a classic group.

``play`` drives it as its user and its coordinator do; ``explore`` tries all their events in a small group.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kipcheck.conformance.core.values.case import Step, step
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE as COOPERATIVE_STICKY, RANGE, Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, Assigned, Partitions
from kipcheck.conformance.protocols.assignment.model.mixed_group import INCOMPATIBLE
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.group.model.messages import Beat, Committed, Error, Fired, Joined, Left, Synced
from kipcheck.conformance.protocols.group.ops import TIME
from kipcheck.conformance.protocols.member.model.client import Client
from kipcheck.conformance.protocols.member.model.consumer import CONSUMER, Consumer
from kipcheck.conformance.protocols.member.model.messages import Event
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS, Config, Rules, rules_of
from kipcheck.conformance.protocols.member.model.state import Asked, Phase, State
from kipcheck.conformance.protocols.member.ops import OPERATIONS, AnswerReceived, CommitOffsets, Poll, Subscribe

ME, OTHER = "m1", "n1"
TOPICS: Final = (("t",), ("t", "u"))
SHARES: Final[tuple[Partitions, ...]] = ((), (("t", 0),), (("t", 0), ("t", 1)))
JOIN_ERRORS: Final = (Error.UNKNOWN_MEMBER_ID, Error.NOT_COORDINATOR, Error.GROUP_MAX_SIZE_REACHED)
SYNC_ERRORS: Final = (
    Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.NOT_COORDINATOR,
)  # fmt: skip
BEAT_ERRORS: Final = (Error.NONE, *SYNC_ERRORS)


@dataclass(frozen=True)
class Environment:
    """Generates the events of a consumer in a small group; other members own the partitions that it does not."""

    consumer: Consumer
    rounds: int

    def within(self, state: State) -> bool:
        return max(state.identity.generation, state.given_in, state.incompatible) <= self.rounds

    def events(self, state: State) -> Iterator[Event]:
        if state.phase is Phase.CLOSED:
            return
        yield from (each for each in self.consumer.enabled(state) if not isinstance(each, CommitOffsets))
        yield from (Subscribe(topics) for topics in TOPICS if topics != state.topics)
        if state.asked is Asked.JOIN:
            yield from self.joined(state)
        if state.asked is Asked.SYNC:
            yield from (Synced(0, Error.NONE, assignment=Assigned(each)) for each in SHARES)
            yield from (Synced(0, each) for each in SYNC_ERRORS)
            if self.consumer.rules.draft:
                yield Synced(0, Error.NONE, assignment=Assigned(error=INCOMPATIBLE))
        if state.beat_as is not None:
            yield from (Beat(0, each) for each in BEAT_ERRORS)
        if state.commit_as is not None:
            yield from (Committed(0, each) for each in BEAT_ERRORS)
        if state.leaving:
            yield Left(0, Error.NONE)

    def joined(self, state: State) -> Iterator[Event]:
        member, generation = state.identity.member or ME, max(state.identity.generation, state.given_in, 0) + 1
        protocol = self.consumer.config.assignors[0].name
        typed = CONSUMER if self.consumer.rules.join >= 7 else None
        yield Joined(0, Error.NONE, generation, typed, protocol, OTHER, member)
        yield from (Joined(0, each) for each in JOIN_ERRORS)
        if not state.identity.member and self.consumer.rules.join >= 4:
            yield Joined(0, Error.MEMBER_ID_REQUIRED, member=ME)


@dataclass(frozen=True)
class Laws:
    consumer: Consumer

    @cached_property
    def all(self) -> tuple[Law[State] | StepLaw[State, Event, Event], ...]:
        return (
            Law(
                "member/gives-up-first",
                lambda index, state: (state.phase, state.owned),
                self._eager,
            ),
            Law(
                "member/lost-when-out",
                lambda index, state: (state.asked, state.asked_as, state.owned),
                self._out,
            ),
            StepLaw(
                "member/owns-what-it-was-given",
                _grown,
            ),
        )

    def _eager(self, views: tuple[tuple[Phase, Partitions]]) -> str | None:
        ((phase, owned),) = views
        joins = phase in (Phase.PREPARING, Phase.COMPLETING)
        return (
            f"it owns {len(owned)} partitions while it joins"
            if self.consumer.protocol == EAGER and joins and owned
            else None
        )

    def _out(self, views: tuple[tuple[Asked, tuple[str, int, str | None], Partitions]]) -> str | None:
        ((asked, (member, generation, _), owned),) = views
        out = asked is Asked.JOIN and (generation < 0 or not member)
        return (
            f"it is out of the group, and joins with {len(owned)} partitions"
            if out and owned and self.consumer.rules.prepares_again
            else None
        )


def _grown(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    grown = {*did.part.owned} - {*before.owned}
    assigned = before.result.partitions if isinstance(before.result, Assigned) else ()
    if not grown or (isinstance(event, Poll) and grown <= {*assigned}):
        return None
    return f"it gained {sorted(grown)}, and was assigned {list(assigned)}"


def _step(event: Event) -> Step:
    match event:
        case Fired(timer):
            return step(TIME, "fired", timer=timer.kind)
        case Joined() | Synced() | Beat() | Left() | Committed():
            return OPERATIONS.step_of(AnswerReceived(event))
    return OPERATIONS.step_of(event)  # type: ignore[arg-type]


def _steps_text(steps: Iterable[Step]) -> str:
    return "; ".join(
        f"{each['timer']} runs out" if each.verb == "fired" else OPERATIONS.shorthand([each]) for each in steps
    )


def _rules(edition: Edition) -> Rules:
    found = rules_of(edition)
    assert found is not None, "callers check the edition first"
    return found


def _product(edition: Edition, scope: Scope) -> Product:
    rules, protocol = _rules(edition), scope["protocol"]
    if protocol == COOPERATIVE and not rules.incremental:
        raise LookupError(f"edition {edition} has no cooperative consumers: use protocol={EAGER}")
    assignor = COOPERATIVE_STICKY if protocol == COOPERATIVE and not rules.draft else RANGE
    config = Config(
        rules,
        (ASSIGNORS[assignor],),
        rebalance_protocol=protocol,
        topics=(Topic("t", 2), Topic("u", 1)),
    )
    return single_consumer(Consumer(config), scope["rounds"])


def single_consumer(consumer: Consumer, rounds: int) -> SingleMachine:
    """A product machine with one consumer and its laws, bounded to ``rounds`` generations."""
    environment = Environment(consumer, rounds)
    return SingleMachine(
        "consumer", consumer, environment.within, environment.events, _step, _steps_text, Laws(consumer).all
    )


MEMBER = Playable(
    name="member",
    about="a consumer that is a member of a classic group",
    editions=lambda edition: None if rules_of(edition) else "apache, apache@RELEASE from 0.10.1.0 on and kip-429",
    world=_product,
    verbs=verbs(OPERATIONS),
    conversation=lambda edition: Conversation(
        "consumer", Client(_rules(edition)), OPERATIONS.event_of, OPERATIONS.parse_shorthand
    ),
    dials={
        "rounds": Bound(1, "number of generations", (1, 2, 3)),
        "protocol": Bound(COOPERATIVE, "rebalance protocol", (COOPERATIVE, EAGER)),
    },
    unlike=lambda edition: {} if _rules(edition).incremental else {"protocol": EAGER},
)  # fmt: skip
PLAYABLES = (MEMBER,)
