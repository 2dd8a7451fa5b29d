"""Describes where a classic group coordinator is unlike that of its release: nothing is owed because a release does it.

The reference coordinator runs the same requests by the edition's rules. Where Kafka leaves open which member leads, or
which of two protocols with equal votes is chosen, it follows the observed choice if it is allowed. After a difference
the two groups are not the same: the comparison stops, and starts again when both have deleted the group. Nothing less
makes them equal, since timers, reserved ids and the log are not observed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group.invariants import ANSWERS, group_invariant
from kipcheck.conformance.protocols.group.invariants.requests import at, breach
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Delete, Error, Join, Joined, Phase, Reply, Request
from kipcheck.conformance.protocols.group.model.service import By, FailWrite, Served, Service
from kipcheck.conformance.protocols.group.model.state import Member, State
from kipcheck.conformance.protocols.group.trace import Trace, TracedStep, settings, trace

PLACE = 70


class Difference(NamedTuple):
    by: int
    """The step at which the answers differ."""
    to: int
    request: Request
    wanted: Reply | None
    """None: no answer yet."""
    got: Reply | None


@dataclass
class Hints:
    """The leaders and protocols that the observed answers show, for choices that Kafka leaves open."""

    trace: Trace
    index: int = 0
    """The step that is run now."""
    shown: dict[str, str] = field(default_factory=dict)
    """Member id of the reference coordinator -> member id in the observed answers."""

    def __post_init__(self) -> None:
        for each in self.trace.asked:
            if isinstance(each.request, Join) and not each.request.member and isinstance(each.answer, Joined):
                self.shown[f"{each.actor}-{each.index}"] = each.answer.member

    def next_generation(self, generation: int) -> list[Joined]:
        """The first answers with a later generation than this one."""
        answers = [
            ((each.by, each.answer.generation), each.answer)
            for each in self.trace.asked
            if each.by is not None and each.by >= self.index
            and isinstance(each.answer, Joined) and each.answer.error == Error.NONE
            and each.answer.generation > generation
        ]  # fmt: skip
        first = min((when for when, _ in answers), default=None)
        return [answer for when, answer in answers if when == first]

    def leader(self, state: State, candidates: tuple[Member, ...]) -> Member | None:
        """The next leader in the observed answers; else a member that is in none of their lists.

        Such a member may have been leader of a generation between the two.
        """
        answers = self.next_generation(state.generation)
        leaders = {each.leader for each in answers}
        members = {id for each in answers for id, _, _ in each.members}
        missing = (each for each in candidates if self.shown.get(each.id) not in members)
        return next((each for each in candidates if self.shown.get(each.id) in leaders), next(missing, None))

    def protocol(self, state: State, candidates: tuple[str, ...]) -> str | None:
        if state.phase is Phase.STABLE:  # does a static member that rejoins start a new round?
            exchange = next((each for each in self.trace.asked if each.index == self.index), None)
            starts = exchange is not None and exchange.parked
            return next((each for each in candidates if (each != state.protocol) is starts), None)
        answers = {each.protocol for each in self.next_generation(state.generation)}
        return next((each for each in candidates if each in answers), None)


class _Following(Coordinator):
    hints: Hints

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        return self.hints.leader(state, candidates) or super().choose_leader(state, candidates)

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        return self.hints.protocol(state, candidates) or super().choose_protocol(state, candidates)


class _FollowingDraft(DraftCoordinator):
    """The draft defines the leader, so only the protocol is chosen."""

    hints: Hints

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        return self.hints.protocol(state, candidates) or super().choose_protocol(state, candidates)


def _coordinator(edition_name: str, hints: Hints, config: Config) -> Coordinator:
    found = coordinator(edition(edition_name))
    if found is None:
        raise LookupError(f"edition {edition_name} has no model of a group coordinator")
    following = _FollowingDraft() if isinstance(found, DraftCoordinator) else _Following(found.rules)
    following.hints = hints
    following.config = config
    return following


@cached_on_history
def differences(history: History) -> tuple[Difference, ...]:
    """The differences at the first step that has any, and at the first one after each restart of the comparison."""
    return tuple(_compared(history))


def _compared(history: History) -> Iterator[Difference]:
    requests = {each.index: each.request for each in trace(history).asked}
    for each in followed(history):
        for to in each.differing:
            if to in requests:
                yield Difference(each.step.index, to, requests[to], each.wanted.get(to), each.got.get(to))


class Followed(NamedTuple):
    """A step that the reference coordinator took as well."""

    step: TracedStep
    before: Served[State]
    """The reference coordinator before it."""
    wanted: Mapping[int, Reply]
    """Its answers by request."""
    got: Mapping[int, Reply]

    @property
    def differing(self) -> list[int]:
        """The requests that are answered otherwise."""
        return [to for to in sorted(self.wanted.keys() | self.got.keys()) if self.wanted.get(to) != self.got.get(to)]


def followed(history: History) -> Iterator[Followed]:
    """The steps up to the first that is answered otherwise, or has an answer that is not modelled, and again from the
    next deletion of the group on."""
    found = trace(history)
    hints = Hints(found)
    config = settings(history)
    service = Service(_coordinator(history.case.edition, hints, config))
    state = service.initial()
    apart = False
    for step in found.steps:
        if apart:
            if _starts_anew(found, step):
                clock = replace(state.clock, now_ms=step.to_ms, timers=())
                state, apart = replace(service.initial(), clock=clock, names=step.after), False
            continue
        hints.index = step.index
        missing = step.index - len(state.actors)  # steps that the target did not get
        before = replace(state, actors=(*state.actors, *[""] * missing))
        if config.initial_delay_ms == 0 and isinstance(step.event, By):
            state, replies = service.step_in_real_time(before, step.event)
        else:
            state, replies = service.step(before, step.event)
        if apart := state.group.failed:
            continue
        each = Followed(step, before, _by_request(replies), _by_request(step.replies))
        yield each
        apart = bool(each.differing)


def _starts_anew(found: Trace, step: TracedStep) -> bool:
    """Was the group deleted, with no write that may still fail?"""
    request = next((each for each in found.asked if each.index == step.index), None)
    return (
        request is not None
        and isinstance(request.request, Delete)
        and not request.nameless
        and request.answer is not None
        and request.answer.error is Error.NONE
        and not any(isinstance(each.event, FailWrite) and each.index < step.index for each in found.steps)
    )


def _by_request(replies: tuple[Reply, ...]) -> Mapping[int, Reply]:
    return {each.to: _settled(each) for each in reversed(replies)}


def _settled(reply: Reply) -> Reply:
    """Sorts the member list of a JoinGroup response: its order is not defined."""
    if isinstance(reply, Joined):
        return replace(reply, members=tuple(sorted(reply.members, key=repr)))
    return reply


def _violation(found: Difference) -> Violation:
    kind = type(found.request).__name__
    exchange = f"the {kind} of {at(found.to)}" if found.to != found.by else f"{at(found.to)}, a {kind},"
    steps = (found.to, found.by)
    if found.wanted is None or found.got is None:
        wanted, got = _described(found.wanted), _described(found.got)
        why = f"at {at(found.by)} {exchange} has {got}; the coordinator of the release would give {wanted}"
        return breach(why, steps, wanted, got, "unlike", kind)
    if found.wanted.error != found.got.error:
        wanted, got = found.wanted.error.name, found.got.error.name
        why = f"at {at(found.by)} {exchange} is answered {got}; the coordinator of the release would answer {wanted}"
        return breach(why, steps, wanted, got, "unlike", kind)
    name, wanted, got = _first_field(found.wanted, found.got)
    why = (
        f"at {at(found.by)} {exchange} is answered {found.got.error.name} with {name} {got}; the coordinator of the"
        f" release would answer with {wanted}"
    )
    return breach(why, steps, f"{name} {wanted}", f"{name} {got}", "unlike", kind)


def _first_field(wanted: Reply, got: Reply) -> tuple[str, str, str]:
    if type(wanted) is not type(got):
        return "the answer", type(wanted).__name__, type(got).__name__
    ours, theirs = asdict(wanted), asdict(got)
    name = next(name for name in ours if ours[name] != theirs[name])
    return name, repr(ours[name]), repr(theirs[name])


def _described(reply: Reply | None) -> str:
    return "no answer yet" if reply is None else f"the answer {reply.error.name}"


@impact(
    "A request is answered unlike the coordinator of the release answers it", "trivia", "error-codes", "misled-operator"
)
@group_invariant("group/like-its-release", "grp-53", checks=(ANSWERS,), grade=Grade.INFO)
def like_its_release(history: History) -> Iterator[Violation]:
    """Each request is answered as the coordinator of the release answers it."""
    for each in differences(history):
        yield _violation(each)
