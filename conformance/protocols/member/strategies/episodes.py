"""Situations of a consumer that random events seldom compose: a conversation may tend towards one of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from kipcheck.conformance.protocols.assignment.model.membership import Assigned
from kipcheck.conformance.protocols.group.model.messages import Beat, Error, Heartbeat, Leave, Sync, Synced
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.member.model.client import HEARTBEAT_MS
from kipcheck.conformance.protocols.member.model.possible import ANSWER_TO, Scene, can_have, is_remembered
from kipcheck.conformance.protocols.member.model.state import Asked, Phase
from kipcheck.conformance.protocols.member.ops import ANSWER_VERB, AnswerReceived, Close, Event, Poll, Unsubscribe

Move: TypeAlias = tuple[float, str, Callable[[], Event]]
"""Weight, verb, and the event."""


@dataclass(frozen=True, slots=True)
class Episode:
    moves: Callable[[Scene], Iterator[Move]]
    """The moves that lead to the situation, in addition to the usual ones."""
    verbs: frozenset[str]
    static: bool
    """Whether only a member with an instance id gets into the situation."""
    cooperative: bool = False
    """Whether only a member that keeps partitions while it joins gets into the situation."""


def taken_over(scene: Scene) -> Iterator[Move]:
    """Another process joins with the member's instance id: a pending request is fenced, mostly a heartbeat."""
    state, pending = scene.seat.state, scene.situation.pending
    stable = state.phase is Phase.STABLE
    if pending and can_have(asked := pending[0].request, Error.FENCED_INSTANCE_ID) and not isinstance(asked, Leave):
        fenced = AnswerReceived(ANSWER_TO[type(asked)](0, Error.FENCED_INSTANCE_ID))
        yield 15 if stable else 0.5, ANSWER_VERB, lambda: fenced
    if stable and state.result is None and not pending:
        yield 10, "member-elapse", lambda: Elapse(HEARTBEAT_MS)


def left_amid_a_join(scene: Scene) -> Iterator[Move]:
    """The user unsubscribes while JoinGroup or SyncGroup is pending, subscribes, and polls before its response."""
    state, situation = scene.seat.state, scene.situation
    if state.asked is Asked.NOTHING or situation.commits:
        return
    if state.phase in (Phase.PREPARING, Phase.COMPLETING):
        yield 12 if state.phase is Phase.COMPLETING else 3, "member-unsubscribe", Unsubscribe
    elif state.topics:
        yield 12, "member-poll", Poll


def out_amid_a_rebalance(scene: Scene) -> Iterator[Move]:
    """The group of a member with partitions rebalances, and it fails to join again, or is closed before it has."""
    state, situation = scene.seat.state, scene.situation
    asked = situation.pending[0].request if situation.pending else None
    if state.phase is Phase.STABLE and state.result is None and state.owned:
        if asked is None:
            yield 10, "member-elapse", lambda: Elapse(HEARTBEAT_MS)
        elif isinstance(asked, Heartbeat) and is_remembered(situation, asked, Error.REBALANCE_IN_PROGRESS):
            yield 10, ANSWER_VERB, lambda: AnswerReceived(Beat(0, Error.REBALANCE_IN_PROGRESS))
    elif state.asked is not Asked.NOTHING and state.given and state.phase in (Phase.PREPARING, Phase.COMPLETING):
        if not situation.commits:
            yield 4, "member-close", Close
        if isinstance(asked, Sync) and state.owned:
            for error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                yield 10, ANSWER_VERB, partial(AnswerReceived, Synced(0, error))


def loses_some(scene: Scene) -> Iterator[Move]:
    """A member is assigned all partitions, and without one of them in the next round."""
    state, pending = scene.seat.state, scene.situation.pending
    asked = pending[0].request if pending else None
    if isinstance(asked, Sync) and not asked.assignments:
        every = ((each.name, number) for each in state.topics_known for number in range(each.partitions))
        some = state.owned[1:] if len(state.owned) > 1 else tuple(each for each in every if each[0] in state.topics)
        assigned = Synced(0, Error.NONE, asked.protocol_type, asked.protocol, Assigned(tuple(sorted(some))))
        yield 15, ANSWER_VERB, lambda: AnswerReceived(assigned)
    elif state.phase is Phase.STABLE and state.result is None and len(state.owned) > 1:
        if asked is None:
            yield 10, "member-elapse", lambda: Elapse(HEARTBEAT_MS)
        elif isinstance(asked, Heartbeat) and is_remembered(scene.situation, asked, Error.REBALANCE_IN_PROGRESS):
            yield 10, ANSWER_VERB, lambda: AnswerReceived(Beat(0, Error.REBALANCE_IN_PROGRESS))


EPISODES: Final = (
    Episode(taken_over, frozenset({ANSWER_VERB, "member-elapse"}), static=True),
    Episode(left_amid_a_join, frozenset({"member-unsubscribe", "member-poll"}), static=False),
    Episode(out_amid_a_rebalance, frozenset({ANSWER_VERB, "member-close", "member-elapse"}), static=False),
    Episode(loses_some, frozenset({ANSWER_VERB, "member-elapse"}), static=False, cooperative=True),
)
